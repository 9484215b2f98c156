//! Custom resource definitions: what they make served.

use kcm_sandbox_apiserver::{Sandbox, ScalePaths};
use serde_json::{Value, json};

use crate::rows::{check, reason, row};
use crate::support::{call, delete, done, get, merge, post, put, strategic, watch, with};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const THING: &str = "/apis/example.com/v1/namespaces/default/things/t";

fn definition() -> Value {
    let subresources = json!({
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "kind": "Thing", "shortNames": ["th"], "categories": ["all"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": subresources,
                "selectableFields": [{ "jsonPath": ".spec.color" }],
            }],
        },
    })
}

fn version(name: &str, storage: bool) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({ "name": name, "served": true, "storage": storage, "schema": schema })
}

fn thing(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name },
        "spec": { "replicas": 2, "color": "red" },
    })
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn kinds_are_served_as_they_are_defined() {
    let defined = || post(DEFINITIONS, &definition());
    for row in [
        row(
            "a definition is completed",
            vec![],
            defined(),
            201,
            vec![
                ("/spec/names/singular", json!("thing")),
                ("/spec/names/listKind", json!("ThingList")),
                ("/spec/conversion/strategy", json!("None")),
                ("/status/storedVersions", json!(["v1"])),
                ("/metadata/generation", json!(1)),
            ],
        )
        .sees(
            DEFINITIONS,
            vec!["ADDED things.example.com", "MODIFIED things.example.com", "MODIFIED things.example.com"],
        ),
        row(
            "a definition is accepted and established",
            vec![defined()],
            get(DEFINITION),
            200,
            vec![
                ("/status/conditions/0/type", json!("NamesAccepted")),
                ("/status/conditions/0/reason", json!("NoConflicts")),
                ("/status/conditions/1/type", json!("Established")),
                ("/status/conditions/1/status", json!("True")),
                ("/status/acceptedNames/plural", json!("things")),
            ],
        ),
        row(
            "a new storage version is added to the stored versions",
            vec![defined()],
            merge(DEFINITION, &json!({ "spec": { "versions": [version("v1", false), version("v2", true)] } })),
            200,
            vec![("/status/storedVersions", json!(["v1", "v2"]))],
        ),
        row(
            "its names are those of the name",
            vec![],
            post(DEFINITIONS, &with(definition(), &json!({ "metadata": { "name": "bad.example.com" } }))),
            422,
            vec![(
                "/details/causes/0/message",
                json!("Invalid value: \"bad.example.com\": must be spec.names.plural+\".\"+spec.group"),
            )],
        ),
        row(
            "its scope never changes",
            vec![defined()],
            merge(DEFINITION, &json!({ "spec": { "scope": "Cluster" } })),
            422,
            vec![("/details/causes/0/field", json!("spec.scope"))],
        ),
        row(
            "other short names are accepted",
            vec![defined()],
            merge(DEFINITION, &json!({ "spec": { "names": { "shortNames": ["tt"] } } })),
            200,
            vec![("/metadata/generation", json!(2))],
        ),
        row(
            "discovery lists the kind",
            vec![defined()],
            get("/apis/example.com/v1"),
            200,
            vec![
                ("/resources/0/name", json!("things")),
                ("/resources/0/shortNames", json!(["th"])),
                ("/resources/0/categories", json!(["all"])),
                ("/resources/1/name", json!("things/status")),
                ("/resources/2/name", json!("things/scale")),
            ],
        ),
        row(
            "an object is made without its status",
            vec![defined()],
            post(THINGS, &with(thing("t"), &json!({ "status": { "replicas": 9 } }))),
            201,
            vec![("/metadata/generation", json!(1)), ("/status", Value::Null)],
        ),
        row(
            "its status is written apart, and nothing else with it",
            vec![defined(), post(THINGS, &thing("t"))],
            merge(
                &format!("{THING}/status"),
                &json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "replicas": 7 }, "status": { "replicas": 2 } }),
            ),
            200,
            vec![
                ("/status", json!({ "replicas": 2 })),
                ("/spec/replicas", json!(2)),
                ("/metadata/labels", Value::Null),
                ("/metadata/generation", json!(1)),
            ],
        ),
        row(
            "its scale is where the definition says",
            vec![
                defined(),
                post(THINGS, &thing("t")),
                merge(&format!("{THING}/status"), &json!({ "status": { "replicas": 1, "selector": "x=y" } })),
            ],
            merge(&format!("{THING}/scale"), &json!({ "spec": { "replicas": 6 } })),
            200,
            vec![("/spec/replicas", json!(6)), ("/status", json!({ "replicas": 1, "selector": "x=y" }))],
        ),
        row(
            "a negative scale",
            vec![defined(), post(THINGS, &thing("t"))],
            merge(&format!("{THING}/scale"), &json!({ "spec": { "replicas": -6 } })),
            422,
            vec![(
                "/message",
                json!(
                    "Thing.example.com \"t\" is invalid: .spec.replicas: Invalid value: -6: should be a non-negative integer"
                ),
            )],
        ),
        row(
            "nothing is known of its lists",
            vec![defined(), post(THINGS, &thing("t"))],
            strategic(THING, &json!({})),
            415,
            vec![(
                "/message",
                json!(
                    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                ),
            )],
        ),
        row(
            "a put names the version that it replaces",
            vec![defined(), post(THINGS, &thing("t"))],
            put(THING, &thing("t")),
            422,
            vec![("/details/causes/0/field", json!("metadata.resourceVersion"))],
        ),
        row(
            "fields are selected by that are defined to be",
            vec![defined(), post(THINGS, &thing("t"))],
            get(&format!("{THINGS}?fieldSelector=spec.color%3Dred")),
            200,
            vec![("/items/0/metadata/name", json!("t"))],
        ),
        row(
            "other fields are not",
            vec![defined()],
            get(&format!("{THINGS}?fieldSelector=spec.replicas%3D1")),
            400,
            reason("BadRequest", "field label not supported: spec.replicas"),
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn built_in_kinds_stay_what_they_are() {
    const APPROVED: &str = "api-approved.kubernetes.io";
    let named = |plural: &str, group: &str| {
        let name = format!("{plural}.{group}");
        with(
            definition(),
            &json!({ "metadata": { "name": name }, "spec": { "group": group, "names": { "plural": plural } } }),
        )
    };
    let annotated = |text: &str| {
        with(named("ingresses", "networking.k8s.io"), &json!({ "metadata": { "annotations": { APPROVED: text } } }))
    };
    let cause = |message: &str| vec![("/details/causes/0/message", json!(message))];
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "i" },
        "spec": { "defaultBackend": { "service": { "name": "s", "port": { "number": 80 } } } },
    });
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let approved = annotated("https://github.com/kubernetes/enhancements/pull/1");
    let path = format!("{DEFINITIONS}/ingresses.networking.k8s.io");
    for row in [
        row(
            "a group without a dot",
            vec![],
            post(DEFINITIONS, &named("deployments", "apps")),
            422,
            cause("Invalid value: \"apps\": should be a domain with at least one dot"),
        ),
        row(
            "a group of the community without approval",
            vec![],
            post(DEFINITIONS, &named("ingresses", "networking.k8s.io")),
            422,
            cause(
                "Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
            ),
        ),
        row(
            "an approval that is none",
            vec![],
            post(DEFINITIONS, &annotated("yes")),
            422,
            cause(
                "Invalid value: \"yes\": protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111",
            ),
        ),
        row(
            "an approved definition has the condition",
            vec![post(DEFINITIONS, &approved)],
            get(&path),
            200,
            vec![
                ("/status/conditions/1/type", json!("KubernetesAPIApprovalPolicyConformant")),
                ("/status/conditions/1/status", json!("True")),
                ("/status/conditions/1/reason", json!("ApprovedAnnotation")),
            ],
        ),
        row(
            "the built-in kind is served with such a definition",
            vec![post(DEFINITIONS, &approved)],
            post(ingresses, &with(policy.clone(), &json!({ "spec": { "ingressClassName": "B A D" } }))),
            422,
            vec![("/details/kind", json!("Ingress"))],
        ),
        row(
            "and without it",
            vec![post(DEFINITIONS, &approved), post(ingresses, &policy), delete(&path)],
            get(&format!("{ingresses}/i")),
            200,
            vec![],
        ),
    ] {
        check(row).await;
    }
}

#[cfg(feature = "kubectl")]
#[tokio::test(start_paused = true)]
async fn the_schema_of_a_definition_is_what_explains_its_kind() {
    let sandbox = Sandbox::default();
    let spec =
        json!({ "type": "object", "properties": { "color": { "type": "string", "description": "Its paint." } } });
    let schema = json!({ "type": "object", "description": "A thing.", "properties": { "spec": spec, "metadata": {} } });
    let mut defined = definition();
    defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    done(&sandbox, &post(DEFINITIONS, &defined)).await;
    let document = done(&sandbox, &get("/openapi/v3/apis/example.com/v1")).await.json;
    let thing = &document["components"]["schemas"]["com.example.v1.Thing"];
    assert_eq!((&thing["description"], &thing["properties"]["spec"]), (&json!("A thing."), &spec));
    assert!(thing["properties"]["metadata"]["allOf"].is_array(), "metadata is that of all objects: {thing}");
    assert_eq!(thing["x-kubernetes-group-version-kind"][0]["kind"], "Thing");
}

#[cfg(feature = "kubectl")]
#[tokio::test(start_paused = true)]
async fn a_definition_names_the_columns_of_its_kind() {
    let sandbox = Sandbox::default();
    let mut defined = definition();
    defined["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        { "name": "Color", "type": "string", "jsonPath": ".spec.color" },
        { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1 },
        { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ]);
    done(&sandbox, &post(DEFINITIONS, &defined)).await;
    done(&sandbox, &post(THINGS, &thing("t"))).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let printed = done(&sandbox, &get(THINGS).header("accept", table)).await.json;
    assert_eq!(printed["rows"][0]["cells"], json!(["t", "red", 2, null, "0s"]));
    let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    done(&sandbox, &merge(&format!("{THING}/status"), &status)).await;
    let printed = done(&sandbox, &get(THING).header("accept", table)).await.json;
    assert_eq!(printed["rows"][0]["cells"], json!(["t", "red", 2, "True", "0s"]));
    let columns = printed["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(names, ["Name", "Color", "Replicas", "Ready", "Age"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_with_its_last_object() {
    let sandbox = Sandbox::default();
    done(&sandbox, &post(DEFINITIONS, &definition())).await;
    done(&sandbox, &post(THINGS, &thing("free"))).await;
    let held = with(thing("t"), &json!({ "metadata": { "finalizers": ["x.io/y"] } }));
    done(&sandbox, &post(THINGS, &held)).await;
    let mut watching = watch(&sandbox, &format!("{THINGS}?watch=true&resourceVersion={}", sandbox.version())).await;

    let deleted = done(&sandbox, &delete(DEFINITION)).await;
    assert_eq!(deleted.json["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(deleted.json["status"]["conditions"][2]["reason"], "InstanceDeletionPending");
    assert_eq!(watching.brief().await, "DELETED free");
    assert_eq!(watching.brief().await, "MODIFIED t");
    let waiting = done(&sandbox, &get(DEFINITION)).await;
    assert_eq!(waiting.json["status"]["conditions"][2]["reason"], "InstanceDeletionInProgress");

    let refused = call(&sandbox, &post(THINGS, &thing("late"))).await.expect("no fault is at work");
    assert_eq!(refused.code, 403);
    let why =
        "things.example.com \"late\" is forbidden: create not allowed while custom resource definition is terminating";
    assert_eq!(refused.text_at("/message"), why);

    done(&sandbox, &merge(THING, &json!({ "metadata": { "finalizers": null } }))).await;
    for path in [DEFINITION, THINGS] {
        assert_eq!(call(&sandbox, &get(path)).await.expect("no fault is at work").code, 404, "{path}");
    }
    assert_eq!(watching.brief().await, "end", "the watch ends with the kind");
}

#[tokio::test(start_paused = true)]
async fn a_registered_kind_may_have_a_scale() {
    let sandbox = Sandbox::default();
    let gadgets = kcm_api::Resource::namespaced("example.com", "v1", "gadgets", "Gadget");
    sandbox.register_scaled(gadgets, ScalePaths::default());
    let gadget = json!({
        "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "g" }, "spec": { "replicas": 2 },
    });
    done(&sandbox, &post("/apis/example.com/v1/namespaces/default/gadgets", &gadget)).await;
    let scale = done(&sandbox, &get("/apis/example.com/v1/namespaces/default/gadgets/g/scale")).await;
    assert_eq!(scale.json["spec"], json!({ "replicas": 2 }));
}
