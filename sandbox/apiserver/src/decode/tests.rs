use serde_json::json;

use super::*;

const DEPLOYMENT: Expected<'_> = Expected { group: "apps", version: "v1", kind: "Deployment", is_custom: false };
const CONFIG_MAP: Expected<'_> = Expected { group: "", version: "v1", kind: "ConfigMap", is_custom: false };
const LEASE: Expected<'_> = Expected { group: "coordination.k8s.io", version: "v1", kind: "Lease", is_custom: false };
const WIDGET: Expected<'_> = Expected { group: "example.com", version: "v1", kind: "Widget", is_custom: true };

/// What became of a body: the object, or the text of the error; and the warnings.
fn read(
    expected: Expected<'_>,
    validation: FieldValidation,
    content_type: &str,
    body: &str,
) -> (Result<Value, (u16, String)>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut decoder = Decoder { expected, validation, keep_unknown: false, warnings: &mut warnings };
    let read = decoder.body(content_type, body.as_bytes());
    (read.map_err(|status| (status.code, status.message)), warnings)
}

fn refused(expected: Expected<'_>, content_type: &str, body: &str) -> String {
    let (read, _) = read(expected, FieldValidation::Warn, content_type, body);
    let (code, message) = read.expect_err(body);
    assert_eq!(code, 400, "{message}");
    message
}

/// A deployment with something more in its spec, its metadata, its pods and their container.
fn deployment(place: &str, more: &str) -> String {
    let at = |name: &str| if name == place { format!(",{more}") } else { String::new() };
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"x"{}}},"spec":{{"selector":{{}},
        "template":{{"spec":{{"containers":[{{"name":"c"{}}}]{}}}}}{}}}{}}}"#,
        at("metadata"),
        at("container"),
        at("pod"),
        at("spec"),
        at("top"),
    )
}

#[test]
fn what_is_no_object_is_not_recognized() {
    let unreadable = "couldn't get version/kind; json parse error: ";
    let go = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    for (content_type, body, why, shown) in [
        ("", "", format!("{unreadable}unexpected end of JSON input"), "<empty>"),
        ("application/json", "  ", format!("{unreadable}unexpected end of JSON input"), "2020"),
        ("application/json", "{", format!("{unreadable}unexpected end of JSON input"), "{"),
        (
            "APPLICATION/JSON; charset=utf-8",
            "[]",
            format!("{unreadable}json: cannot unmarshal array into Go value of type {go}"),
            "5b5d",
        ),
        ("", "12", format!("{unreadable}json: cannot unmarshal number into Go value of type {go}"), "3132"),
        (
            "",
            r#"{"kind":3}"#,
            format!("{unreadable}json: cannot unmarshal number into Go struct field .kind of type string"),
            r#"{"kind":3}"#,
        ),
        (
            "",
            r#"{"kind":{}}"#,
            format!("{unreadable}json: cannot unmarshal object into Go struct field .kind of type string"),
            r#"{"kind":{}}"#,
        ),
        (
            "",
            r#"{"kind":"Deployment","apiVersion":"a/b/c"}"#,
            "unexpected GroupVersion string: a/b/c".to_owned(),
            r#"{"kind":"Deployment","apiVersi ..."#,
        ),
        (
            "application/yaml",
            "- a",
            format!("{unreadable}json: cannot unmarshal array into Go value of type {go}"),
            "2d2061",
        ),
        ("application/yaml", "spec: *b", "yaml: unknown anchor 'b' referenced".to_owned(), "737065633a202a62"),
    ] {
        let expected = format!("the object provided is unrecognized (must be of type Deployment): {why} ({shown})");
        assert_eq!(refused(DEPLOYMENT, content_type, body), expected, "{body}");
    }
}

#[test]
fn what_is_of_another_kind_is_refused_by_how_foreign_it_is() {
    let scheme = r#"in scheme "pkg/runtime/scheme.go:111""#;
    for (body, given, why) in [
        (
            r#"{"kind":"Foo","apiVersion":"apps/v1"}"#,
            r#"Foo in version "v1""#,
            format!(r#"no kind "Foo" is registered for version "apps/v1" {scheme}"#),
        ),
        (
            r#"{"kind":"Foo"}"#,
            r#"Foo in version "v1""#,
            format!(r#"no kind "Foo" is registered for version "apps/v1" {scheme}"#),
        ),
        (
            r#"{"apiVersion":"v1"}"#,
            r#"Deployment in version "v1""#,
            format!(r#"no kind "Deployment" is registered for version "v1" {scheme}"#),
        ),
        (
            r#"{"kind":"Deployment","apiVersion":"apps/v2"}"#,
            r#"Deployment in version "v2""#,
            format!(r#"no kind "Deployment" is registered for version "apps/v2" {scheme}"#),
        ),
        (
            r#"{"Kind":"Foo","apiversion":"zz/v1"}"#,
            r#"Foo in version "v1""#,
            format!(r#"no kind "Foo" is registered for version "zz/v1" {scheme}"#),
        ),
        (
            r#"{"kind":"Pod","apiVersion":"v1"}"#,
            r#"Pod in version "v1""#,
            "converting (v1.Pod) to (apps.Deployment): unknown conversion".to_owned(),
        ),
        (
            r#"{"kind":"DeploymentList","apiVersion":"apps/v1"}"#,
            r#"DeploymentList in version "v1""#,
            "converting (v1.DeploymentList) to (apps.Deployment): unknown conversion".to_owned(),
        ),
        (
            r#"{"kind":"Status","apiVersion":"v1"}"#,
            r#"Status in version "v1""#,
            "converting (v1.Status) to (apps.Deployment): unknown conversion".to_owned(),
        ),
    ] {
        assert_eq!(
            refused(DEPLOYMENT, "", body),
            format!("{given} cannot be handled as a Deployment: {why}"),
            "{body}"
        );
    }
    let autoscaler =
        Expected { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler", is_custom: false };
    assert_eq!(
        refused(autoscaler, "", r#"{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1"}"#),
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)"
    );
}

#[test]
fn other_formats_are_not_read() {
    for (expected, content_type) in [
        (DEPLOYMENT, "text/plain"),
        (DEPLOYMENT, "*/*"),
        (DEPLOYMENT, "application/apply-patch+yaml"),
        (WIDGET, "application/vnd.kubernetes.protobuf"),
    ] {
        let (read, _) = read(expected, FieldValidation::Warn, content_type, "{}");
        assert_eq!(read.expect_err(content_type).0, 415, "{content_type}");
    }
}

#[test]
fn protobuf_is_checked_as_json_is() {
    let protobuf = "application/vnd.kubernetes.protobuf";
    let body = "k8s\0\n\u{f}\n\u{2}v1\u{12}\tConfigMap\u{12}\u{0}";
    let (object, warnings) = read(CONFIG_MAP, FieldValidation::Strict, protobuf, body);
    assert_eq!((object, warnings), (Ok(json!({ "apiVersion": "v1", "kind": "ConfigMap" })), Vec::new()));
    let foreign = r#"ConfigMap in version "v1" cannot be handled as a Deployment: converting (v1.ConfigMap) to (apps.Deployment): unknown conversion"#;
    assert_eq!(refused(DEPLOYMENT, protobuf, body), foreign);
    let unreadable = "the object provided is unrecognized (must be of type Deployment): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})";
    assert_eq!(refused(DEPLOYMENT, protobuf, "{}"), unreadable);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_wrong_type_is_told_with_the_struct_the_field_and_the_type_of_go() {
    for (place, more, what, field, of) in [
        ("spec", r#""replicas":"three""#, "string", "DeploymentSpec.spec.replicas", "int32"),
        ("spec", r#""replicas":3.5"#, "number 3.5", "DeploymentSpec.spec.replicas", "int32"),
        ("spec", r#""replicas":3.0"#, "number 3.0", "DeploymentSpec.spec.replicas", "int32"),
        ("spec", r#""replicas":1e1"#, "number 1e1", "DeploymentSpec.spec.replicas", "int32"),
        ("spec", r#""replicas":99999999999"#, "number 99999999999", "DeploymentSpec.spec.replicas", "int32"),
        ("spec", r#""replicas":[]"#, "array", "DeploymentSpec.spec.replicas", "int32"),
        ("spec", r#""paused":1"#, "number", "DeploymentSpec.spec.paused", "bool"),
        ("spec", r#""strategy":"x""#, "string", "DeploymentSpec.spec.strategy", "v1.DeploymentStrategy"),
        (
            "spec",
            r#""strategy":{"type":3}"#,
            "number",
            "DeploymentStrategy.spec.strategy.type",
            "v1.DeploymentStrategyType",
        ),
        (
            "spec",
            r#""strategy":{"rollingUpdate":{"maxSurge":true}}"#,
            "bool",
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge",
            "int32",
        ),
        (
            "spec",
            r#""strategy":{"rollingUpdate":{"maxSurge":1.5}}"#,
            "number 1.5",
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge",
            "int32",
        ),
        (
            "spec",
            r#""selector":{"matchLabels":{"a":3}}"#,
            "number",
            "LabelSelector.spec.selector.matchLabels",
            "string",
        ),
        (
            "spec",
            r#""selector":{"matchLabels":[]}"#,
            "array",
            "LabelSelector.spec.selector.matchLabels",
            "map[string]string",
        ),
        (
            "spec",
            r#""selector":{"matchExpressions":{}}"#,
            "object",
            "LabelSelector.spec.selector.matchExpressions",
            "[]v1.LabelSelectorRequirement",
        ),
        (
            "spec",
            r#""selector":{"matchExpressions":[3]}"#,
            "number",
            "LabelSelector.spec.selector.matchExpressions",
            "v1.LabelSelectorRequirement",
        ),
        (
            "spec",
            r#""selector":{"matchExpressions":[{"values":[3]}]}"#,
            "number",
            "LabelSelectorRequirement.spec.selector.matchExpressions.values",
            "string",
        ),
        ("metadata", r#""labels":{"a":3}"#, "number", "ObjectMeta.metadata.labels", "string"),
        ("metadata", r#""uid":3"#, "number", "ObjectMeta.metadata.uid", "types.UID"),
        ("metadata", r#""creationTimestamp":3"#, "number", "ObjectMeta.metadata.creationTimestamp", "string"),
        (
            "metadata",
            r#""ownerReferences":[{"controller":"x"}]"#,
            "string",
            "OwnerReference.metadata.ownerReferences.controller",
            "bool",
        ),
        (
            "container",
            r#""ports":[{"containerPort":80,"protocol":3}]"#,
            "number",
            "ContainerPort.spec.template.spec.containers.ports.protocol",
            "v1.Protocol",
        ),
        (
            "container",
            r#""resources":{"limits":[]}"#,
            "array",
            "ResourceRequirements.spec.template.spec.containers.resources.limits",
            "v1.ResourceList",
        ),
        (
            "container",
            r#""securityContext":{"capabilities":{"add":[3]}}"#,
            "number",
            "Capabilities.spec.template.spec.containers.securityContext.capabilities.add",
            "v1.Capability",
        ),
        (
            "container",
            r#""livenessProbe":{"httpGet":{"port":true}}"#,
            "bool",
            "HTTPGetAction.spec.template.spec.containers.livenessProbe.ProbeHandler.httpGet.port",
            "int32",
        ),
        (
            "pod",
            r#""volumes":[{"name":"v","emptyDir":3}]"#,
            "number",
            "Volume.spec.template.spec.volumes.VolumeSource.emptyDir",
            "v1.EmptyDirVolumeSource",
        ),
        ("pod", r#""restartPolicy":3"#, "number", "PodSpec.spec.template.spec.restartPolicy", "v1.RestartPolicy"),
        ("top", r#""status":3"#, "number", "Deployment.status", "v1.DeploymentStatus"),
        // The first wrong type is told, but a value that checks itself goes before it.
        ("spec", r#""replicas":"a","paused":3"#, "string", "DeploymentSpec.spec.replicas", "int32"),
        (
            "spec",
            r#""replicas":"a","strategy":{"rollingUpdate":{"maxSurge":true}}"#,
            "bool",
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge",
            "int32",
        ),
    ] {
        let expected = format!(
            r#"Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal {what} into Go struct field {field} of type {of}"#
        );
        assert_eq!(refused(DEPLOYMENT, "", &deployment(place, more)), expected, "{more}");
    }
}

#[test]
fn values_that_check_themselves_say_why() {
    let quantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let time = r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#;
    let micro = r#"parsing time "2020" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "" as "-""#;
    let base64 = "illegal base64 data at input byte 0";
    for (expected, body, why) in [
        (DEPLOYMENT, deployment("container", r#""resources":{"limits":{"cpu":true}}"#), quantity),
        (DEPLOYMENT, deployment("container", r#""resources":{"limits":{"cpu":"1x"}}"#), quantity),
        (DEPLOYMENT, deployment("pod", r#""volumes":[{"emptyDir":{"sizeLimit":{}}}]"#), quantity),
        (DEPLOYMENT, deployment("metadata", r#""creationTimestamp":"x""#), time),
        (LEASE, r#"{"spec":{"renewTime":"2020"}}"#.to_owned(), micro),
        (CONFIG_MAP, r#"{"binaryData":{"a":"!!"}}"#.to_owned(), base64),
    ] {
        let kind = expected.kind;
        let message = refused(expected, "", &body);
        assert_eq!(message, format!(r#"{kind} in version "v1" cannot be handled as a {kind}: {why}"#), "{body}");
    }
}

#[test]
fn nulls_are_absent_in_objects_and_empty_in_lists_and_maps() {
    let body = json!({
        "metadata": { "name": "a", "labels": { "x": null }, "finalizers": ["a/b", null], "ownerReferences": [null] },
        "data": null, "immutable": null, "binaryData": { "a": null },
    });
    let (read, warnings) = read(CONFIG_MAP, FieldValidation::Strict, "", &body.to_string());
    let expected = json!({
        "metadata": { "name": "a", "labels": { "x": "" }, "finalizers": ["a/b", ""], "ownerReferences": [{}] },
        "binaryData": { "a": "" },
    });
    assert_eq!((read, warnings), (Ok(expected), Vec::new()));
}

#[test]
fn times_and_quantities_are_rewritten() {
    let body = json!({ "spec": { "renewTime": "2020-01-01T01:00:00.500000+01:00" } });
    let (lease, _) = read(LEASE, FieldValidation::Strict, "", &body.to_string());
    assert_eq!(lease, Ok(json!({ "spec": { "renewTime": "2020-01-01T00:00:00.500000Z" } })));
    let body = deployment("container", r#""resources":{"limits":{"cpu":1.50}}"#);
    let (deployment, _) = read(DEPLOYMENT, FieldValidation::Strict, "", &body);
    let limits = deployment.expect("the deployment is valid")["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(limits["resources"]["limits"], json!({ "cpu": "1.50" }));
}

#[test]
fn unknown_and_repeated_fields_are_dropped_told_or_refused_as_the_request_says() {
    for (more, told) in [
        (r#""foo":1"#, vec![r#"unknown field "spec.foo""#]),
        (r#""paused":true,"paused":false"#, vec![r#"duplicate field "spec.paused""#]),
        (r#""Paused":true"#, vec![r#"unknown field "spec.Paused""#]),
        (r#""a\"bé":1"#, vec![r#"unknown field "spec.a\"bé""#]),
        (
            r#""selector":{"matchLabels":{"a":"b","a":"c"}},"strategy":{"rollingUpdate":{"x":1}},"foo":{"y":1,"y":2}"#,
            vec![
                r#"duplicate field "spec.selector""#,
                r#"duplicate field "spec.selector.matchLabels.a""#,
                r#"unknown field "spec.strategy.rollingUpdate.x""#,
                r#"unknown field "spec.foo""#,
            ],
        ),
    ] {
        let body = deployment("spec", more);
        let (object, warnings) = read(DEPLOYMENT, FieldValidation::Warn, "", &body);
        assert_eq!(warnings, told, "{more}");
        let object = object.expect("only a strict reader minds");
        assert!(object["spec"].get("foo").is_none() && object["spec"].get("Paused").is_none(), "{object}");

        let (ignored, warnings) = read(DEPLOYMENT, FieldValidation::Ignore, "", &body);
        assert_eq!((ignored, warnings), (Ok(object), Vec::new()), "{more}");

        let (refused, warnings) = read(DEPLOYMENT, FieldValidation::Strict, "", &body);
        let message = format!(
            r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: {}"#,
            told.join(", ")
        );
        assert_eq!((refused, warnings), (Err((400, message)), Vec::new()), "{more}");
    }
    let body = deployment("container", r#""bar":{"x":1},"env":[{"name":"a","vale":"x"}]"#);
    let (_, warnings) = read(DEPLOYMENT, FieldValidation::Warn, "", &body);
    let told = [
        r#"unknown field "spec.template.spec.containers[0].bar""#,
        r#"unknown field "spec.template.spec.containers[0].env[0].vale""#,
    ];
    assert_eq!(warnings, told);
}

#[test]
fn yaml_tells_repeated_keys_with_their_line() {
    let body = "kind: Deployment\nspec:\n  replicas: 3\n  replicas: 4\n  foo: 1\n";
    let (object, warnings) = read(DEPLOYMENT, FieldValidation::Warn, "application/yaml", body);
    assert_eq!(object, Ok(json!({ "kind": "Deployment", "spec": { "replicas": 4 } })));
    assert_eq!(warnings, ["line 4: key \"replicas\" already set in map", "unknown field \"spec.foo\""]);
    let (refused, _) = read(DEPLOYMENT, FieldValidation::Strict, "application/yaml", body);
    let message = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: yaml: unmarshal errors:\n  line 4: key \"replicas\" already set in map, unknown field \"spec.foo\"";
    assert_eq!(refused, Err((400, message.to_owned())));
}

#[test]
fn unknown_fields_survive_where_that_is_wanted() {
    let mut warnings = Vec::new();
    let mut decoder = Decoder {
        expected: CONFIG_MAP,
        validation: FieldValidation::Strict,
        keep_unknown: true,
        warnings: &mut warnings,
    };
    let object = json!({ "metadata": { "name": "a", "new": [null, 1] }, "newer": { "x": null } });
    let read = decoder.value(object.clone()).expect("the object is valid");
    assert_eq!((&read["metadata"], &read["newer"]), (&object["metadata"], &object["newer"]));
    assert_eq!((&read["kind"], &read["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
}

#[test]
fn of_custom_objects_only_the_metadata_is_typed() {
    let widget = |rest: &str| format!(r#"{{"apiVersion":"example.com/v1","kind":"Widget"{rest}}}"#);
    let handled = r#"Widget in version "v1" cannot be handled as a Widget: "#;
    let versions = |given: &str| {
        format!("the API version in the data ({given}) does not match the expected API version (example.com/v1)")
    };
    for (body, expected) in [
        (
            "{}".to_owned(),
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' ({})"
                .to_owned(),
        ),
        (r#"{"kind":"Widget"}"#.to_owned(), versions("")),
        (r#"{"kind":"Widget","apiVersion":"v1"}"#.to_owned(), versions("v1")),
        (
            widget(r#","metadata":{"labels":{"a":3}}"#),
            format!("{handled}json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        ),
        (
            widget(r#","metadata":3"#),
            format!("{handled}json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
        ),
    ] {
        assert_eq!(refused(WIDGET, "", &body), expected, "{body}");
    }
    let (other_kind, _) = read(WIDGET, FieldValidation::Warn, "", r#"{"kind":"Foo","apiVersion":"example.com/v1"}"#);
    let message = r#"Foo.example.com "" is invalid: kind: Invalid value: "Foo": must be Widget"#;
    assert_eq!(other_kind, Err((422, message.to_owned())));

    let body = widget(r#","metadata":{"name":"w","foo":3},"spec":{"a":1,"a":2,"b":null},"zz":1"#);
    let (object, warnings) = read(WIDGET, FieldValidation::Warn, "", &body);
    assert_eq!(warnings, [r#"unknown field "metadata.foo""#, r#"duplicate field "spec.a""#]);
    let object = object.expect("only a strict reader minds");
    assert_eq!((&object["metadata"], &object["spec"]), (&json!({ "name": "w" }), &json!({ "a": 2, "b": null })));
}

/// What became of a patch of a deployment, which `make` applies.
fn patch(
    validation: FieldValidation,
    content_type: &str,
    body: &str,
    patched: &str,
) -> (Result<Value, (u16, String)>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut decoder = Decoder { expected: DEPLOYMENT, validation, keep_unknown: false, warnings: &mut warnings };
    let patched: Value = serde_json::from_str(patched).expect("the patched object is JSON");
    let read = decoder.patched(content_type, body.as_bytes(), || Ok(patched.clone()));
    (read.map_err(|status| (status.code, status.message)), warnings)
}

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";

#[test]
fn what_is_no_patch_is_refused() {
    let map = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    for (content_type, body, expected) in [
        (MERGE, "{", "error decoding patch: unexpected end of JSON input".to_owned()),
        (MERGE, "[]", format!("error decoding patch: {map}")),
        (STRATEGIC, "", "unexpected end of JSON input".to_owned()),
        (STRATEGIC, "[]", map.to_owned()),
        (
            OPERATIONS,
            "{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
                .to_owned(),
        ),
        (
            OPERATIONS,
            "[3]",
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp".to_owned(),
        ),
        (
            OPERATIONS,
            r#"[{"op":3}]"#,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
                .to_owned(),
        ),
    ] {
        assert_eq!(patch(FieldValidation::Warn, content_type, body, "{}").0, Err((400, expected)), "{body}");
    }
}

#[test]
fn what_a_patch_makes_of_an_object_is_checked() {
    let wrong = r#"{"spec":{"replicas":"x"}}"#;
    let message = format!(
        r#" "" is invalid: patch: Invalid value: {}: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"#,
        quote(wrong)
    );
    assert_eq!(patch(FieldValidation::Warn, MERGE, "{}", wrong).0, Err((422, message)));

    let unknown = r#"{"spec":{"foo":1,"paused":true}}"#;
    let repeated = r#"{"spec":{"paused":false,"paused":true}}"#;
    let told = [r#"duplicate field "spec.paused""#.to_owned(), r#"unknown field "spec.foo""#.to_owned()];
    let (object, warnings) = patch(FieldValidation::Warn, MERGE, repeated, unknown);
    assert_eq!((object, warnings), (Ok(json!({ "spec": { "paused": true } })), told.to_vec()));
    let message = format!(
        r#" "" is invalid: patch: Invalid value: {}: strict decoding error: {}"#,
        quote(unknown),
        told.join(", ")
    );
    assert_eq!(patch(FieldValidation::Strict, MERGE, repeated, unknown).0, Err((422, message)));

    let operations = r#"[{"op":"add","path":"/spec/paused","value":true,"value":false,"foo":1}]"#;
    let (_, warnings) = patch(FieldValidation::Warn, OPERATIONS, operations, r#"{"spec":{"paused":true}}"#);
    assert_eq!(warnings, [r#"json patch duplicate field "[0].value""#, r#"json patch unknown field "[0].foo""#]);
}

#[test]
fn a_strategic_patch_is_told_in_words_of_its_own() {
    for (body, shown, why) in [
        (r#"{"spec":{"replicas":"x"}}"#, "map[spec:map[replicas:x]]", "unrecognized type: int32"),
        (r#"{"spec":{"replicas":3.5}}"#, "map[spec:map[replicas:3.5]]", "cannot convert float64 to int32"),
        (r#"{"spec":3}"#, "map[spec:3]", "cannot restore struct from: int64"),
        (r#"{"spec":{"template":[]}}"#, "map[spec:map[template:[]]]", "cannot restore struct from: slice"),
        (r#"{"metadata":{"labels":{"a":3}}}"#, "map[metadata:map[labels:map[a:3]]]", "cannot convert int64 to string"),
        (r#"{"metadata":{"finalizers":3}}"#, "map[metadata:map[finalizers:3]]", "cannot restore slice from int64"),
        (r#"{"spec":{"paused":"true"}}"#, "map[spec:map[paused:true]]", "unrecognized type: bool"),
        (
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#,
            "map[spec:map[strategy:map[rollingUpdate:map[maxSurge:true]]]]",
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ] {
        let message = format!(r#" "" is invalid: patch: Invalid value: "{shown}": {why}"#);
        assert_eq!(patch(FieldValidation::Warn, STRATEGIC, body, body).0, Err((422, message)), "{body}");
    }
    let body = r#"{"kind":"Foo","spec":{"replicas":99999999999}}"#;
    let (object, _) = patch(FieldValidation::Strict, STRATEGIC, body, body);
    assert_eq!(object.map(|object| object["spec"]["replicas"].clone()), Ok(json!(1_215_752_191)));
}

#[test]
fn warnings_are_headers_each_once_and_quoted() {
    let mut headers = HeaderMap::new();
    let warning = r#"unknown field "spec.foo""#.to_owned();
    write_warnings(&mut headers, &[warning.clone(), warning, "x".repeat(5000)]);
    let written: Vec<&HeaderValue> = headers.get_all("warning").iter().collect();
    assert_eq!(written, [r#"299 - "unknown field \"spec.foo\"""#]);
}
