//! Patches.

use serde_json::{Value, json};

use crate::rows::{JSON_PATCH, MAP, MAPS, PODS, WEB, check, reason, row};
use crate::support::{merge, patch, pod, post, strategic, with};

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn patches() {
    let set_owner = |name: &str| json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name });
    let owned = with(pod("web"), &json!({ "metadata": { "ownerReferences": [set_owner("a"), set_owner("b")] } }));
    for row in [
        row(
            "adoption adds an owner if the uid is right",
            vec![post(PODS, &pod("web"))],
            strategic(WEB, &json!({ "metadata": { "uid": "{uid}", "ownerReferences": [set_owner("a")] } })),
            200,
            vec![("/metadata/ownerReferences", json!([set_owner("a")]))],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "an owner with the same uid is merged",
            vec![post(PODS, &owned)],
            strategic(WEB, &json!({ "metadata": { "ownerReferences": [{ "uid": "b", "controller": true }] } })),
            200,
            vec![
                ("/metadata/ownerReferences/0", set_owner("a")),
                ("/metadata/ownerReferences/1", with(set_owner("b"), &json!({ "controller": true }))),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "release removes the owner by its uid",
            vec![post(PODS, &owned)],
            strategic(
                WEB,
                &json!({ "metadata": { "uid": "{uid}", "ownerReferences": [{ "$patch": "delete", "uid": "a" }] } }),
            ),
            200,
            vec![("/metadata/ownerReferences", json!([set_owner("b")]))],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "another uid is an invalid change",
            vec![post(PODS, &pod("web"))],
            strategic(WEB, &json!({ "metadata": { "uid": "other" } })),
            422,
            vec![
                ("/message", json!("Pod \"web\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable")),
                ("/details/causes/0/field", json!("metadata.uid")),
            ],
        ),
        row(
            "a stale version in a patch",
            vec![post(PODS, &pod("web"))],
            merge(WEB, &json!({ "metadata": { "resourceVersion": "1", "labels": { "a": "b" } } })),
            409,
            vec![("/reason", json!("Conflict"))],
        ),
        row(
            "a merge patch removes with null",
            vec![post(PODS, &pod("web"))],
            merge(WEB, &json!({ "metadata": { "labels": { "app": null, "a": "b" } } })),
            200,
            vec![("/metadata/labels", json!({ "a": "b" }))],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "a JSON patch",
            vec![post(MAPS, &json!({ "metadata": { "name": "web" }, "data": { "a": "1" } }))],
            patch(
                JSON_PATCH,
                MAP,
                &json!([
                    { "op": "test", "path": "/data/a", "value": "1" },
                    { "op": "add", "path": "/data/b", "value": "2" },
                    { "op": "remove", "path": "/data/a" },
                ]),
            ),
            200,
            vec![("/data", json!({ "b": "2" }))],
        ),
        row(
            "a JSON patch whose test fails",
            vec![post(MAPS, &json!({ "metadata": { "name": "web" }, "data": { "a": "1" } }))],
            patch(JSON_PATCH, MAP, &json!([{ "op": "test", "path": "/data/a", "value": "2" }])),
            422,
            reason("Invalid", "the server rejected our request due to an error in our request"),
        ),
        row(
            "a pod's status is patched by condition type",
            vec![post(PODS, &pod("web"))],
            strategic(
                &format!("{WEB}/status"),
                &json!({ "spec": { "nodeName": "n9" }, "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
            ),
            200,
            vec![
                ("/status/conditions", json!([{
                    "type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null,
                }])),
                ("/status/phase", json!("Pending")),
                ("/spec/nodeName", Value::Null),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "a patch that changes nothing writes nothing",
            vec![post(PODS, &pod("web"))],
            merge(WEB, &json!({ "metadata": { "labels": { "app": "web" } } })),
            200,
            vec![],
        ),
        row("an absent object", vec![], merge(WEB, &json!({})), 404, reason("NotFound", "pods \"web\" not found")),
        row(
            "an unknown kind of patch",
            vec![post(PODS, &pod("web"))],
            patch("text/plain", WEB, &json!({})),
            415,
            reason(
                "UnsupportedMediaType",
                "415: Unsupported Media Type",
            ),
        ),
    ] {
        check(row).await;
    }
}
