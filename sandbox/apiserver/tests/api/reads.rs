//! Gets and lists.

use serde_json::{Value, json};

use crate::rows::{MAPS, PODS, WEB, check, reason, row};
use crate::support::{get, pod, post, put};

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn reads() {
    let maps = || {
        vec![
            post(MAPS, &json!({ "metadata": { "name": "b", "labels": { "x": "1" } } })),
            post(MAPS, &json!({ "metadata": { "name": "a" } })),
            post("/api/v1/namespaces/kube-system/configmaps", &json!({ "metadata": { "name": "c" } })),
        ]
    };
    let names = |names: &[&str]| -> Vec<(&'static str, Value)> {
        let pointers = ["/items/0/metadata/name", "/items/1/metadata/name", "/items/2/metadata/name"];
        let found = names.iter().map(|name| json!(name)).chain(std::iter::repeat(Value::Null));
        pointers.into_iter().zip(found).collect()
    };
    let every = "/api/v1/configmaps";
    for row in [
        row("one object", vec![post(PODS, &pod("web"))], get(WEB), 200, vec![("/metadata/name", json!("web"))]),
        row(
            "metadata alone",
            vec![post(PODS, &pod("web"))],
            get(WEB).header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            200,
            vec![("/kind", json!("PartialObjectMetadata")), ("/spec", Value::Null), ("/metadata/name", json!("web"))],
        ),
        row(
            "protobuf is not written",
            vec![post(PODS, &pod("web"))],
            get(WEB).header("accept", "application/vnd.kubernetes.protobuf"),
            406,
            vec![("/reason", json!("NotAcceptable"))],
        ),
        row("an absent object", vec![], get(WEB), 404, reason("NotFound", "pods \"web\" not found")),
        row("in the order of namespaces and names", maps(), get(every), 200, names(&["a", "b", "c"])),
        row("one namespace", maps(), get(MAPS), 200, names(&["a", "b"])),
        row("an absent namespace is empty", maps(), get("/api/v1/namespaces/x/configmaps"), 200, names(&[])),
        row("by label", maps(), get(&format!("{every}?labelSelector=x%20in%20(1,2)")), 200, names(&["b"])),
        row("by absence of a label", maps(), get(&format!("{every}?labelSelector=!x")), 200, names(&["a", "c"])),
        row("by name", maps(), get(&format!("{every}?fieldSelector=metadata.name%3Da")), 200, names(&["a"])),
        row(
            "by namespace, negated",
            maps(),
            get(&format!("{every}?fieldSelector=metadata.namespace!%3Ddefault")),
            200,
            names(&["c"]),
        ),
        row(
            "items of built-in lists do not name their kind",
            maps(),
            get(every),
            200,
            vec![
                ("/kind", json!("ConfigMapList")),
                ("/apiVersion", json!("v1")),
                ("/items/0/kind", Value::Null),
                ("/items/0/apiVersion", Value::Null),
            ],
        ),
        row(
            "metadata of a list",
            maps(),
            get(every).header("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            200,
            vec![("/kind", json!("PartialObjectMetadataList")), ("/items/0/kind", json!("PartialObjectMetadata"))],
        ),
        row(
            "an unknown field",
            vec![],
            get(&format!("{PODS}?fieldSelector=spec.foo%3D1")),
            400,
            reason("BadRequest", "field label not supported: spec.foo"),
        ),
        row(
            "an unreadable label selector",
            vec![],
            get(&format!("{PODS}?labelSelector=a%20b")),
            400,
            vec![("/reason", json!("BadRequest"))],
        ),
        row(
            "the first page",
            maps(),
            get(&format!("{every}?limit=2")),
            200,
            [names(&["a", "b"]), vec![("/metadata/remainingItemCount", json!(1))]].concat(),
        ),
        row(
            "a version that is yet to come",
            vec![],
            get(&format!("{PODS}?resourceVersion=1000")),
            504,
            vec![("/reason", json!("Timeout")), ("/details/causes/0/reason", json!("ResourceVersionTooLarge"))],
        ),
        row(
            "a match without a version",
            vec![],
            get(&format!("{PODS}?resourceVersionMatch=Exact")),
            422,
            vec![("/details/causes/0/field", json!("resourceVersionMatch"))],
        ),
        row(
            "initial events of a list",
            vec![],
            get(&format!("{PODS}?sendInitialEvents=true")),
            422,
            vec![("/details/causes/0/message", json!("Forbidden: sendInitialEvents is forbidden for list"))],
        ),
        row(
            "initial events without a match",
            vec![],
            get(&format!("{PODS}?watch=true&sendInitialEvents=true")),
            422,
            vec![(
                "/details/causes/0/message",
                json!("Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            )],
        ),
        row(
            "an unknown resource",
            vec![],
            get("/api/v1/namespaces/default/things"),
            404,
            reason("NotFound", "the server could not find the requested resource"),
        ),
        row(
            "an object of a namespaced resource outside of any",
            vec![],
            get("/api/v1/pods/web"),
            404,
            reason("NotFound", "the server could not find the requested resource"),
        ),
        row(
            "a method that there is not",
            vec![],
            put(PODS, &pod("web")),
            405,
            vec![("/reason", json!("MethodNotAllowed"))],
        ),
    ] {
        check(row).await;
    }
}
