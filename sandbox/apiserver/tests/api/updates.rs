//! Puts, of objects and of their status.

use serde_json::{Value, json};

use crate::rows::{PODS, SET, SET_STATUS, SETS, WEB, check, reason, row};
use crate::support::{merge, pod, post, put, replica_set, strategic, with};

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn updates() {
    let scaled = with(replica_set("web"), &json!({ "spec": { "replicas": 3 } }));
    let versioned = |object: Value| with(object, &json!({ "metadata": { "resourceVersion": "{version}" } }));
    let labelled = with(replica_set("web"), &json!({ "metadata": { "labels": { "tier": "front" } } }));
    let with_status = with(replica_set("web"), &json!({ "status": { "replicas": 2 }, "spec": { "replicas": 9 } }));
    for row in [
        row(
            "a changed spec counts a generation",
            vec![post(SETS, &replica_set("web"))],
            put(SET, &versioned(scaled.clone())),
            200,
            vec![("/metadata/generation", json!(2)), ("/spec/replicas", json!(3))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "changed labels count none",
            vec![post(SETS, &replica_set("web"))],
            put(SET, &versioned(labelled)),
            200,
            vec![("/metadata/generation", json!(1)), ("/metadata/labels/tier", json!("front"))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "changed annotations of a deployment count one",
            vec![post(
                "/apis/apps/v1/namespaces/default/deployments",
                &with(replica_set("web"), &json!({ "kind": "Deployment" })),
            )],
            merge(
                "/apis/apps/v1/namespaces/default/deployments/web",
                &json!({ "metadata": { "annotations": { "a": "b" } } }),
            ),
            200,
            vec![("/metadata/generation", json!(2))],
        ),
        row(
            "a put that changes nothing writes nothing",
            vec![post(SETS, &replica_set("web"))],
            put(SET, &versioned(replica_set("web"))),
            200,
            vec![("/metadata/generation", json!(1))],
        ),
        row(
            "a put without a version is unconditional",
            vec![post(SETS, &replica_set("web"))],
            put(SET, &scaled),
            200,
            vec![("/spec/replicas", json!(3))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a stale version",
            vec![post(SETS, &replica_set("web"))],
            put(SET, &with(scaled.clone(), &json!({ "metadata": { "resourceVersion": "1" } }))),
            409,
            reason(
                "Conflict",
                "Operation cannot be fulfilled on replicasets.apps \"web\": the object has been modified; please apply your changes to the latest version and try again",
            ),
        ),
        row(
            "another uid",
            vec![post(SETS, &replica_set("web"))],
            put(SET, &with(scaled.clone(), &json!({ "metadata": { "uid": "other" } }))),
            409,
            vec![("/reason", json!("Conflict"))],
        ),
        row(
            "an absent object",
            vec![],
            put(SET, &scaled),
            404,
            reason("NotFound", "replicasets.apps \"web\" not found"),
        ),
        row(
            "another name in the body",
            vec![],
            put(SET, &replica_set("api")),
            400,
            reason("BadRequest", "the name of the object (api) does not match the name on the URL (web)"),
        ),
        row(
            "a put leaves the status alone",
            vec![post(SETS, &replica_set("web")), put(SET_STATUS, &versioned(with_status.clone()))],
            put(SET, &with(scaled.clone(), &json!({ "status": { "replicas": 7 } }))),
            200,
            vec![("/status/replicas", json!(2)), ("/spec/replicas", json!(3))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a status put leaves the spec alone",
            vec![post(SETS, &replica_set("web"))],
            put(SET_STATUS, &versioned(with_status)),
            200,
            vec![("/status/replicas", json!(2)), ("/spec/replicas", json!(1)), ("/metadata/generation", json!(1))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a status put takes metadata with it",
            vec![post(SETS, &with(replica_set("web"), &json!({ "metadata": { "annotations": { "a": "b" } } })))],
            put(SET_STATUS, &versioned(with(replica_set("web"), &json!({ "status": { "replicas": 1 } })))),
            200,
            vec![("/metadata/annotations", Value::Null)],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "an impossible status",
            vec![post(SETS, &replica_set("web"))],
            put(SET_STATUS, &with(replica_set("web"), &json!({ "status": { "replicas": 1, "readyReplicas": 2 } }))),
            422,
            vec![
                ("/details/causes/0/field", json!("status.readyReplicas")),
                ("/details/causes/0/message", json!("Invalid value: 2: cannot be greater than status.replicas")),
            ],
        ),
        row(
            "a selector that changes",
            vec![post(SETS, &replica_set("web"))],
            merge(
                SET,
                &json!({ "spec": {
                    "selector": { "matchLabels": { "tier": "front" } },
                    "template": { "metadata": { "labels": { "tier": "front" } } },
                } }),
            ),
            422,
            vec![("/details/causes/0/field", json!("spec.selector"))],
        ),
        row(
            "a pod's fixed spec",
            vec![post(PODS, &pod("web"))],
            merge(WEB, &json!({ "spec": { "dnsPolicy": "Default" } })),
            422,
            vec![("/details/causes/0/reason", json!("FieldValueForbidden"))],
        ),
        row(
            "a pod's image",
            vec![post(PODS, &pod("web"))],
            strategic(WEB, &json!({ "spec": { "containers": [{ "name": "main", "image": "web:2" }] } })),
            200,
            vec![("/spec/containers/0/image", json!("web:2")), ("/metadata/generation", json!(2))],
        )
        .sees(PODS, vec!["MODIFIED web"]),
    ] {
        check(row).await;
    }
}
