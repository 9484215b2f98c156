//! Deletions: grace, finalizers, preconditions.

use serde_json::json;

use crate::rows::{MAPS, PODS, SET, SETS, WEB, check, reason, row};
use crate::support::{delete, delete_with, merge, pod, post, put, replica_set, with};

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn deletions() {
    let bound = with(pod("web"), &json!({ "spec": { "nodeName": "n1" } }));
    let held = with(pod("web"), &json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    let held_set = with(replica_set("web"), &json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    for row in [
        row(
            "an unbound pod is removed at once, after one last change",
            vec![post(PODS, &pod("web"))],
            delete(WEB),
            200,
            vec![("/kind", json!("Pod")), ("/metadata/deletionGracePeriodSeconds", json!(0))],
        )
        .sees(PODS, vec!["MODIFIED web", "DELETED web"]),
        row(
            "a bound pod waits for its grace period",
            vec![post(PODS, &bound)],
            delete(WEB),
            200,
            vec![
                ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:30Z")),
                ("/metadata/deletionGracePeriodSeconds", json!(30)),
                ("/metadata/generation", json!(2)),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "a second deletion with the same grace changes nothing",
            vec![post(PODS, &bound), delete(WEB)],
            delete(WEB),
            200,
            vec![("/metadata/deletionGracePeriodSeconds", json!(30))],
        ),
        row(
            "grace 0 removes a terminating pod",
            vec![post(PODS, &bound), delete(WEB)],
            delete_with(WEB, &json!({ "gracePeriodSeconds": 0 })),
            200,
            vec![],
        )
        .sees(PODS, vec!["MODIFIED web", "DELETED web"]),
        row(
            "a shorter grace brings the end forward",
            vec![post(PODS, &bound), delete(WEB)],
            delete(&format!("{WEB}?gracePeriodSeconds=5")),
            200,
            vec![
                ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:05Z")),
                ("/metadata/deletionGracePeriodSeconds", json!(5)),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "a finished pod is removed at once",
            vec![post(PODS, &bound), merge(&format!("{WEB}/status"), &json!({ "status": { "phase": "Failed" } }))],
            delete(WEB),
            200,
            vec![],
        )
        .sees(PODS, vec!["MODIFIED web", "DELETED web"]),
        row(
            "a finalizer holds a pod",
            vec![post(PODS, &held)],
            delete(WEB),
            200,
            vec![("/metadata/deletionGracePeriodSeconds", json!(0))],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "the last finalizer lets it go",
            vec![post(PODS, &held), delete(WEB)],
            merge(WEB, &json!({ "metadata": { "finalizers": null } })),
            200,
            vec![],
        )
        .sees(PODS, vec!["DELETED web"]),
        row(
            "no finalizer is added to a terminating object",
            vec![post(SETS, &held_set), delete(SET)],
            merge(SET, &json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/more"] } })),
            422,
            vec![("/details/causes/0/field", json!("metadata.finalizers"))],
        ),
        row(
            "kinds without grace answer with a status",
            vec![post(SETS, &replica_set("web"))],
            delete(SET),
            200,
            vec![
                ("/kind", json!("Status")),
                ("/status", json!("Success")),
                ("/details/kind", json!("replicasets")),
                ("/details/name", json!("web")),
            ],
        )
        .sees(SETS, vec!["DELETED web"]),
        row(
            "a held set is marked, with its generation",
            vec![post(SETS, &held_set)],
            delete(SET),
            200,
            vec![("/metadata/generation", json!(2)), ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a foreground deletion waits for the collector",
            vec![post(SETS, &replica_set("web"))],
            delete_with(SET, &json!({ "propagationPolicy": "Foreground" })),
            200,
            vec![("/metadata/finalizers", json!(["foregroundDeletion"]))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "orphaning waits for the collector",
            vec![post(SETS, &replica_set("web"))],
            delete(&format!("{SET}?propagationPolicy=Orphan")),
            200,
            vec![("/metadata/finalizers", json!(["orphan"]))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "another uid in the precondition",
            vec![post(PODS, &pod("web"))],
            delete_with(WEB, &json!({ "preconditions": { "uid": "other" } })),
            409,
            vec![("/reason", json!("Conflict"))],
        ),
        row(
            "the right uid in the precondition",
            vec![post(SETS, &replica_set("web"))],
            delete_with(SET, &json!({ "preconditions": { "uid": "{uid}", "resourceVersion": "{version}" } })),
            200,
            vec![],
        )
        .sees(SETS, vec!["DELETED web"]),
        row(
            "another version in the precondition",
            vec![post(PODS, &pod("web"))],
            delete_with(WEB, &json!({ "preconditions": { "resourceVersion": "1" } })),
            409,
            vec![("/reason", json!("Conflict"))],
        ),
        row(
            "a dry run removes nothing",
            vec![post(SETS, &replica_set("web"))],
            delete_with(SET, &json!({ "dryRun": ["All"] })),
            200,
            vec![],
        ),
        row("an absent object", vec![], delete(WEB), 404, reason("NotFound", "pods \"web\" not found")),
        row(
            "a collection is deleted by selector",
            vec![
                post(MAPS, &json!({ "metadata": { "name": "a", "labels": { "x": "1" } } })),
                post(MAPS, &json!({ "metadata": { "name": "b" } })),
            ],
            delete(&format!("{MAPS}?labelSelector=x%3D1")),
            200,
            vec![("/kind", json!("ConfigMapList")), ("/items/0/metadata/name", json!("a"))],
        )
        .sees(MAPS, vec!["DELETED a"]),
        row(
            "a namespace terminates first",
            vec![post("/api/v1/namespaces", &json!({ "metadata": { "name": "a" } }))],
            delete("/api/v1/namespaces/a"),
            200,
            vec![("/status/phase", json!("Terminating"))],
        )
        .sees("/api/v1/namespaces", vec!["MODIFIED a"]),
        row(
            "a finalized namespace is removed",
            vec![post("/api/v1/namespaces", &json!({ "metadata": { "name": "a" } })), delete("/api/v1/namespaces/a")],
            put("/api/v1/namespaces/a/finalize", &json!({ "metadata": { "name": "a" }, "spec": { "finalizers": [] } })),
            200,
            vec![],
        )
        .sees("/api/v1/namespaces", vec!["DELETED a"]),
    ] {
        check(row).await;
    }
}
