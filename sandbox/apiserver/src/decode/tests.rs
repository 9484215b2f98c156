use serde_json::json;

use super::*;

const DEPLOYMENT: Expected<'_> = Expected { group: "apps", version: "v1", kind: "Deployment", is_custom: false };
const CONFIG_MAP: Expected<'_> = Expected { group: "", version: "v1", kind: "ConfigMap", is_custom: false };
const LEASE: Expected<'_> = Expected { group: "coordination.k8s.io", version: "v1", kind: "Lease", is_custom: false };
const WIDGET: Expected<'_> = Expected { group: "example.com", version: "v1", kind: "Widget", is_custom: true };

/// Returns the decoded object or the text of the error, and the warnings.
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
    for (content_type, body, shown) in [
        ("", "", "<empty>"),
        ("application/json", "  ", "2020"),
        ("application/json", "{", "{"),
        ("APPLICATION/JSON; charset=utf-8", "[]", "5b5d"),
        ("", "12", "3132"),
        ("", r#"{"kind":3}"#, r#"{"kind":3}"#),
        ("", r#"{"kind":{}}"#, r#"{"kind":{}}"#),
        ("", r#"{"kind":"Deployment","apiVersion":"a/b/c"}"#, r#"{"kind":"Deployment","apiVersi ..."#),
        ("application/yaml", "- a", "2d2061"),
        ("application/yaml", "spec: *b", "737065633a202a62"),
    ] {
        let message = refused(DEPLOYMENT, content_type, body);
        let begins = "the object provided is unrecognized (must be of type Deployment): ";
        assert!(message.starts_with(begins) && message.ends_with(&format!(" ({shown})")), "{body}: {message}");
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
    let message = refused(DEPLOYMENT, protobuf, "{}");
    assert!(message.starts_with("the object provided is unrecognized (must be of type Deployment): "), "{message}");
}

#[test]
fn a_wrong_type_is_refused_with_the_path_of_its_field() {
    for (place, more, field) in [
        ("spec", r#""replicas":"three""#, "spec.replicas"),
        ("spec", r#""replicas":3.5"#, "spec.replicas"),
        ("spec", r#""replicas":3.0"#, "spec.replicas"),
        ("spec", r#""replicas":1e1"#, "spec.replicas"),
        ("spec", r#""replicas":99999999999"#, "spec.replicas"),
        ("spec", r#""replicas":[]"#, "spec.replicas"),
        ("spec", r#""paused":1"#, "spec.paused"),
        ("spec", r#""strategy":"x""#, "spec.strategy"),
        ("spec", r#""strategy":{"type":3}"#, "spec.strategy.type"),
        ("spec", r#""strategy":{"rollingUpdate":{"maxSurge":true}}"#, "spec.strategy.rollingUpdate.maxSurge"),
        ("spec", r#""strategy":{"rollingUpdate":{"maxSurge":1.5}}"#, "spec.strategy.rollingUpdate.maxSurge"),
        ("spec", r#""selector":{"matchLabels":{"a":3}}"#, "spec.selector.matchLabels.a"),
        ("spec", r#""selector":{"matchLabels":[]}"#, "spec.selector.matchLabels"),
        ("spec", r#""selector":{"matchExpressions":{}}"#, "spec.selector.matchExpressions"),
        ("spec", r#""selector":{"matchExpressions":[3]}"#, "spec.selector.matchExpressions[0]"),
        ("spec", r#""selector":{"matchExpressions":[{"values":[3]}]}"#, "spec.selector.matchExpressions[0].values[0]"),
        ("metadata", r#""labels":{"a":3}"#, "metadata.labels.a"),
        ("metadata", r#""uid":3"#, "metadata.uid"),
        ("metadata", r#""creationTimestamp":3"#, "metadata.creationTimestamp"),
        ("metadata", r#""ownerReferences":[{"controller":"x"}]"#, "metadata.ownerReferences[0].controller"),
        (
            "container",
            r#""ports":[{"containerPort":80,"protocol":3}]"#,
            "spec.template.spec.containers[0].ports[0].protocol",
        ),
        ("container", r#""resources":{"limits":[]}"#, "spec.template.spec.containers[0].resources.limits"),
        (
            "container",
            r#""livenessProbe":{"httpGet":{"port":true}}"#,
            "spec.template.spec.containers[0].livenessProbe.httpGet.port",
        ),
        ("pod", r#""volumes":[{"name":"v","emptyDir":3}]"#, "spec.template.spec.volumes[0].emptyDir"),
        ("pod", r#""restartPolicy":3"#, "spec.template.spec.restartPolicy"),
        ("top", r#""status":3"#, "status"),
        // Values that have a form of their own.
        (
            "container",
            r#""resources":{"limits":{"cpu":true}}"#,
            "spec.template.spec.containers[0].resources.limits.cpu",
        ),
        (
            "container",
            r#""resources":{"limits":{"cpu":"1x"}}"#,
            "spec.template.spec.containers[0].resources.limits.cpu",
        ),
        ("pod", r#""volumes":[{"emptyDir":{"sizeLimit":{}}}]"#, "spec.template.spec.volumes[0].emptyDir.sizeLimit"),
        ("metadata", r#""creationTimestamp":"x""#, "metadata.creationTimestamp"),
    ] {
        let message = refused(DEPLOYMENT, "", &deployment(place, more));
        let expected = format!(r#"Deployment in version "v1" cannot be handled as a Deployment: {field}: expected "#);
        assert!(message.starts_with(&expected), "{more}: {message}");
    }
    for (expected, body, why) in [
        (
            LEASE,
            r#"{"spec":{"renewTime":"2020"}}"#,
            r#"Lease in version "v1" cannot be handled as a Lease: spec.renewTime: expected a time of RFC 3339, found "2020""#,
        ),
        (
            CONFIG_MAP,
            r#"{"binaryData":{"a":"!!"}}"#,
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: binaryData.a: expected base64, found "!!""#,
        ),
    ] {
        assert_eq!(refused(expected, "", body), why);
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
    assert_eq!(limits["resources"]["limits"], json!({ "cpu": "1.5" }));
}

#[test]
fn unknown_and_repeated_fields_are_dropped_warned_of_or_refused_as_the_request_says() {
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
                r#"unknown field "spec.foo""#,
                r#"unknown field "spec.strategy.rollingUpdate.x""#,
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
fn repeated_keys_of_yaml_are_reported_with_their_line() {
    let body = "kind: Deployment\nspec:\n  replicas: 3\n  replicas: 4\n  foo: 1\n";
    let (object, warnings) = read(DEPLOYMENT, FieldValidation::Warn, "application/yaml", body);
    assert_eq!(object, Ok(json!({ "kind": "Deployment", "spec": { "replicas": 4 } })));
    assert_eq!(warnings, ["line 4: key \"replicas\" already set in map", "unknown field \"spec.foo\""]);
    let (refused, _) = read(DEPLOYMENT, FieldValidation::Strict, "application/yaml", body);
    let message = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: line 4: key \"replicas\" already set in map, unknown field \"spec.foo\"";
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
            format!("{handled}metadata.labels.a: expected a string, found the number 3"),
        ),
        (widget(r#","metadata":3"#), format!("{handled}metadata: expected an object, found the number 3")),
    ] {
        assert_eq!(refused(WIDGET, "", &body), expected, "{body}");
    }
    let (other_kind, _) = read(WIDGET, FieldValidation::Warn, "", r#"{"kind":"Foo","apiVersion":"example.com/v1"}"#);
    let message = r#"Foo.example.com "" is invalid: kind: Invalid value: "Foo": must be Widget"#;
    assert_eq!(other_kind, Err((422, message.to_owned())));

    let body = widget(r#","metadata":{"name":"w","foo":3},"spec":{"a":1,"a":2,"b":null},"zz":1"#);
    let (object, warnings) = read(WIDGET, FieldValidation::Warn, "", &body);
    assert_eq!(warnings, [r#"duplicate field "spec.a""#, r#"unknown field "metadata.foo""#]);
    let object = object.expect("only a strict reader minds");
    assert_eq!((&object["metadata"], &object["spec"]), (&json!({ "name": "w" }), &json!({ "a": 2, "b": null })));
}

/// Returns the result of a patch of a deployment, which `make` applies.
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
    for (content_type, body) in [
        (MERGE, "{"),
        (MERGE, "[]"),
        (STRATEGIC, ""),
        (STRATEGIC, "[]"),
        (OPERATIONS, "{}"),
        (OPERATIONS, "[3]"),
        (OPERATIONS, r#"[{"op":3}]"#),
    ] {
        let (code, _) = patch(FieldValidation::Warn, content_type, body, "{}").0.expect_err(body);
        assert_eq!(code, 400, "{body}");
    }
}

#[test]
fn what_a_patch_makes_of_an_object_is_checked() {
    let wrong = r#"{"spec":{"replicas":"x"}}"#;
    let message = format!(
        r#" "" is invalid: patch: Invalid value: {wrong:?}: spec.replicas: expected an integer of 32 bits, found a string"#
    );
    assert_eq!(patch(FieldValidation::Warn, MERGE, "{}", wrong).0, Err((422, message)));

    let unknown = r#"{"spec":{"foo":1,"paused":true}}"#;
    let repeated = r#"{"spec":{"paused":false,"paused":true}}"#;
    let told = [r#"duplicate field "spec.paused""#.to_owned(), r#"unknown field "spec.foo""#.to_owned()];
    let (object, warnings) = patch(FieldValidation::Warn, MERGE, repeated, unknown);
    assert_eq!((object, warnings), (Ok(json!({ "spec": { "paused": true } })), told.to_vec()));
    let message =
        format!(r#" "" is invalid: patch: Invalid value: {unknown:?}: strict decoding error: {}"#, told.join(", "));
    assert_eq!(patch(FieldValidation::Strict, MERGE, repeated, unknown).0, Err((422, message)));

    let operations = r#"[{"op":"add","path":"/spec/paused","value":true,"value":false,"foo":1}]"#;
    let (_, warnings) = patch(FieldValidation::Warn, OPERATIONS, operations, r#"{"spec":{"paused":true}}"#);
    assert_eq!(warnings, [r#"json patch duplicate field "[0].value""#, r#"json patch unknown field "[0].foo""#]);
}

#[test]
fn what_a_strategic_patch_makes_of_an_object_is_checked() {
    for (body, field) in [
        (r#"{"spec":{"replicas":"x"}}"#, "spec.replicas"),
        (r#"{"spec":{"replicas":3.5}}"#, "spec.replicas"),
        (r#"{"spec":{"replicas":99999999999}}"#, "spec.replicas"),
        (r#"{"spec":3}"#, "spec"),
        (r#"{"spec":{"template":[]}}"#, "spec.template"),
        (r#"{"metadata":{"labels":{"a":3}}}"#, "metadata.labels.a"),
        (r#"{"metadata":{"finalizers":3}}"#, "metadata.finalizers"),
        (r#"{"spec":{"paused":"true"}}"#, "spec.paused"),
    ] {
        let (code, message) = patch(FieldValidation::Warn, STRATEGIC, body, body).0.expect_err(body);
        let expected = format!(r#" "" is invalid: patch: Invalid value: {body:?}: {field}: expected "#);
        assert!(code == 422 && message.starts_with(&expected), "{body}: {message}");
    }
    let body = r#"{"kind":"Foo","spec":{"replicas":3}}"#;
    let (object, _) = patch(FieldValidation::Strict, STRATEGIC, body, body);
    assert_eq!(object.map(|object| object["spec"]["replicas"].clone()), Ok(json!(3)));
}

#[test]
fn warnings_are_headers_each_once_and_quoted() {
    let mut headers = HeaderMap::new();
    let warning = r#"unknown field "spec.foo""#.to_owned();
    write_warnings(&mut headers, &[warning.clone(), warning, "x".repeat(5000)]);
    let written: Vec<&HeaderValue> = headers.get_all("warning").iter().collect();
    assert_eq!(written, [r#"299 - "unknown field \"spec.foo\"""#]);
}
