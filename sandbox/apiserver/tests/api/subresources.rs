//! Subresources that are objects of their own: scales, evictions, bindings; and what writes through others keep.

use serde_json::{Value, json};

use crate::rows::{JSON_PATCH, PODS, SET, SETS, WEB, check, reason, row};
use crate::support::{delete, get, merge, patch, pod, post, put, replica_set, strategic, with};

const SCALE: &str = "/apis/apps/v1/namespaces/default/replicasets/web/scale";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
/// A PEM block with nothing in it.
const CSR: &str =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUFBPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
const EVICTION: &str = "/api/v1/namespaces/default/pods/web/eviction";

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn scales() {
    let selector = json!({
        "matchLabels": { "app": "web" },
        "matchExpressions": [
            { "key": "z", "operator": "DoesNotExist" },
            { "key": "app", "operator": "In", "values": ["web", "b"] },
        ],
    });
    let choosy = with(replica_set("web"), &json!({ "spec": { "selector": selector } }));
    let scale = |metadata: Value, spec: Value| json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec });
    for row in [
        row(
            "a scale shows what is wanted, what is there, and the selector as text",
            vec![post(SETS, &choosy)],
            get(SCALE),
            200,
            vec![
                ("/kind", json!("Scale")),
                ("/apiVersion", json!("autoscaling/v1")),
                ("/metadata/name", json!("web")),
                ("/spec", json!({ "replicas": 1 })),
                ("/status", json!({ "replicas": 0, "selector": "app=web,app in (b,web),!z" })),
            ],
        ),
        row(
            "a scale is put, and counts as a generation of the object",
            vec![post(SETS, &replica_set("web"))],
            put(SCALE, &scale(json!({ "name": "web" }), json!({ "replicas": 5 }))),
            200,
            vec![("/spec/replicas", json!(5)), ("/metadata/generation", Value::Null)],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "no replicas are none",
            vec![post(SETS, &replica_set("web"))],
            put(SCALE, &scale(json!({ "name": "web", "labels": { "a": "b" } }), json!({}))),
            200,
            vec![("/spec", json!({})), ("/metadata/labels", Value::Null)],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a merge patch of a scale",
            vec![post(SETS, &replica_set("web"))],
            merge(SCALE, &json!({ "spec": { "replicas": 3 } })),
            200,
            vec![("/spec/replicas", json!(3))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a strategic patch of a scale that changes nothing",
            vec![post(SETS, &replica_set("web"))],
            strategic(SCALE, &json!({ "spec": { "replicas": 1 } })),
            200,
            vec![],
        ),
        row(
            "a JSON patch of a scale",
            vec![post(SETS, &replica_set("web"))],
            patch(JSON_PATCH, SCALE, &json!([{ "op": "replace", "path": "/spec/replicas", "value": 4 }])),
            200,
            vec![("/spec/replicas", json!(4))],
        )
        .sees(SETS, vec!["MODIFIED web"]),
        row(
            "a negative scale",
            vec![post(SETS, &replica_set("web"))],
            merge(SCALE, &json!({ "spec": { "replicas": -1 } })),
            422,
            vec![
                (
                    "/message",
                    json!(
                        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
                    ),
                ),
                ("/details/kind", json!("Scale")),
            ],
        ),
        row(
            "an old version of a scale",
            vec![post(SETS, &replica_set("web"))],
            put(SCALE, &scale(json!({ "name": "web", "resourceVersion": "1" }), json!({ "replicas": 1 }))),
            409,
            vec![(
                "/message",
                json!(
                    "Operation cannot be fulfilled on replicasets.apps \"web\": the object has been modified; please apply your changes to the latest version and try again"
                ),
            )],
        ),
        row(
            "another uid in a patch of a scale",
            vec![post(SETS, &replica_set("web"))],
            merge(SCALE, &json!({ "metadata": { "uid": "1" } })),
            409,
            vec![("/details", json!({ "name": "web", "group": "apps", "kind": "replicasets/scale" }))],
        ),
        row(
            "a scale without a name",
            vec![post(SETS, &replica_set("web"))],
            put(SCALE, &scale(json!({}), json!({ "replicas": 1 }))),
            400,
            reason("BadRequest", "the name of the object (web based on URL) was undeterminable: name must be provided"),
        ),
        row(
            "a dry run of a scale",
            vec![post(SETS, &replica_set("web"))],
            merge(&format!("{SCALE}?dryRun=All"), &json!({ "spec": { "replicas": 8 } })),
            200,
            vec![("/spec/replicas", json!(8))],
        ),
        row("no object, no scale", vec![], get(SCALE), 404, reason("NotFound", "replicasets.apps \"web\" not found")),
        row(
            "a scale is not deleted",
            vec![post(SETS, &replica_set("web"))],
            delete(SCALE),
            405,
            vec![("/reason", json!("MethodNotAllowed"))],
        ),
    ] {
        check(row).await;
    }
}

fn budget(status: &Value) -> Value {
    json!({ "metadata": { "name": "web" }, "status": status })
}

fn eviction() -> Value {
    json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "web" } })
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn evictions() {
    let placed = with(pod("web"), &json!({ "spec": { "nodeName": "n1" } }));
    let run = |ready: &str| {
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        merge(&format!("{WEB}/status"), &json!({ "status": { "phase": "Running", "conditions": conditions } }))
    };
    let selector = json!({ "matchLabels": { "app": "web" } });
    let guard = |name: &str, policy: &str| {
        let spec = json!({ "minAvailable": 1, "selector": selector, "unhealthyPodEvictionPolicy": policy });
        post(BUDGETS, &json!({ "metadata": { "name": name }, "spec": spec }))
    };
    let status = |allowed: i64, healthy: i64| {
        let status = json!({
            "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": 1,
            "expectedPods": 1,
        });
        merge(&format!("{BUDGETS}/web/status"), &budget(&status))
    };
    let refused = |why: &str| {
        vec![
            ("/reason", json!("TooManyRequests")),
            ("/message", json!("Cannot evict pod as it would violate the pod's disruption budget.")),
            ("/details/causes", json!([{ "reason": "DisruptionBudget", "message": why }])),
        ]
    };
    let gone = || vec![("/status", json!("Success")), ("/code", json!(201))];
    let done = || vec!["MODIFIED web", "MODIFIED web"];
    for row in [
        row(
            "a pod without a budget goes",
            vec![post(PODS, &placed), run("True")],
            post(EVICTION, &eviction()),
            201,
            gone(),
        )
        .sees(PODS, done()),
        row(
            "a dry run of an eviction",
            vec![post(PODS, &placed), run("True")],
            post(&format!("{EVICTION}?dryRun=All"), &eviction()),
            201,
            gone(),
        ),
        row(
            "a dry run of an eviction by its options",
            vec![post(PODS, &placed), run("True")],
            post(EVICTION, &with(eviction(), &json!({ "deleteOptions": { "dryRun": ["All"] } }))),
            201,
            gone(),
        ),
        row(
            "another uid in the options of an eviction",
            vec![post(PODS, &placed), run("True")],
            post(EVICTION, &with(eviction(), &json!({ "deleteOptions": { "preconditions": { "uid": "x" } } }))),
            409,
            vec![("/details/kind", json!("Pod"))],
        ),
        row(
            "the right version in the options of an eviction",
            vec![post(PODS, &placed), run("True")],
            post(
                EVICTION,
                &with(eviction(), &json!({ "deleteOptions": { "preconditions": { "resourceVersion": "{version}" } } })),
            ),
            201,
            gone(),
        )
        .sees(PODS, done()),
        row(
            "another name",
            vec![post(PODS, &placed)],
            post(EVICTION, &with(eviction(), &json!({ "metadata": { "name": "other" } }))),
            400,
            reason("BadRequest", "name in URL does not match name in Eviction object"),
        ),
        row(
            "a budget without an observed generation",
            vec![post(PODS, &placed), run("True"), guard("web", "IfHealthyBudget")],
            post(EVICTION, &eviction()),
            429,
            vec![
                ("/details/retryAfterSeconds", json!(10)),
                (
                    "/details/causes/0/message",
                    json!("The disruption budget web is still being processed by the server."),
                ),
            ],
        ),
        row(
            "a budget that allows nothing",
            vec![post(PODS, &placed), run("True"), guard("web", "IfHealthyBudget"), status(0, 1)],
            post(EVICTION, &eviction()),
            429,
            refused("The disruption budget web needs 1 healthy pods and has 1 currently"),
        ),
        row(
            "a budget that allows nothing for another reason",
            vec![post(PODS, &placed), run("True"), guard("web", "IfHealthyBudget"), status(0, 2)],
            post(EVICTION, &eviction()),
            429,
            refused("The disruption budget web does not allow evicting pods currently"),
        ),
        row(
            "a budget that allows one",
            vec![post(PODS, &placed), run("True"), guard("web", "IfHealthyBudget"), status(1, 2)],
            post(EVICTION, &eviction()),
            201,
            gone(),
        )
        .sees(PODS, done()),
        row(
            "an evicted pod is recorded in the budget",
            vec![
                post(PODS, &placed),
                run("True"),
                guard("web", "IfHealthyBudget"),
                status(1, 2),
                post(EVICTION, &eviction()),
            ],
            get(&format!("{BUDGETS}/web")),
            200,
            vec![
                ("/status/disruptionsAllowed", json!(0)),
                ("/status/disruptedPods", json!({ "web": "2026-01-01T00:00:00Z" })),
                ("/status/conditions/0/reason", json!("InsufficientPods")),
                ("/status/conditions/0/observedGeneration", json!(1)),
            ],
        ),
        row(
            "a dry run checks the budget and does not change it",
            vec![
                post(PODS, &placed),
                run("True"),
                guard("web", "IfHealthyBudget"),
                status(1, 2),
                post(&format!("{EVICTION}?dryRun=All"), &eviction()),
            ],
            get(&format!("{BUDGETS}/web")),
            200,
            vec![("/status/disruptionsAllowed", json!(1)), ("/status/disruptedPods", Value::Null)],
        ),
        row(
            "two budgets",
            vec![post(PODS, &placed), run("True"), guard("web", "IfHealthyBudget"), guard("other", "IfHealthyBudget")],
            post(EVICTION, &eviction()),
            500,
            vec![(
                "/message",
                json!(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
                ),
            )],
        ),
        row(
            "an unready pod of a healthy application goes",
            vec![post(PODS, &placed), run("False"), guard("web", "IfHealthyBudget"), status(0, 1)],
            post(EVICTION, &eviction()),
            201,
            gone(),
        )
        .sees(PODS, done()),
        row(
            "an unready pod of an unhealthy application stays",
            vec![post(PODS, &placed), run("False"), guard("web", "IfHealthyBudget"), status(0, 0)],
            post(EVICTION, &eviction()),
            429,
            refused("The disruption budget web needs 1 healthy pods and has 0 currently"),
        ),
        row(
            "an unready pod always goes where the budget says so",
            vec![post(PODS, &placed), run("False"), guard("web", "AlwaysAllow")],
            post(EVICTION, &eviction()),
            201,
            gone(),
        )
        .sees(PODS, done()),
        row(
            "a pod that has not started is free to go",
            vec![post(PODS, &placed), guard("web", "IfHealthyBudget")],
            post(EVICTION, &eviction()),
            201,
            gone(),
        )
        .sees(PODS, done()),
        row("an absent pod", vec![], post(EVICTION, &eviction()), 404, reason("NotFound", "pods \"web\" not found")),
        row(
            "an eviction cannot be read",
            vec![post(PODS, &placed)],
            get(EVICTION),
            405,
            vec![("/reason", json!("MethodNotAllowed"))],
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn bindings() {
    let binding = |metadata: Value, target: Value| {
        let metadata = with(json!({ "name": "web" }), &metadata);
        post(&format!("{WEB}/binding"), &json!({ "metadata": metadata, "target": target }))
    };
    let failed = |why: &str| vec![("/message", json!(why)), ("/reason", Value::Null)];
    for row in [
        row(
            "annotations and labels go over to the pod",
            vec![
                post(PODS, &pod("web")),
                binding(json!({ "annotations": { "x": "y" }, "labels": { "l": "m" } }), json!({ "name": "n1" })),
            ],
            get(WEB),
            200,
            vec![
                ("/spec/nodeName", json!("n1")),
                ("/metadata/annotations", json!({ "x": "y" })),
                ("/metadata/labels", json!({ "app": "web", "l": "m" })),
                ("/metadata/generation", json!(1)),
            ],
        ),
        row(
            "no node",
            vec![post(PODS, &pod("web"))],
            binding(json!({}), json!({})),
            500,
            failed("target.name: Required value"),
        ),
        row(
            "no node at all",
            vec![post(PODS, &pod("web"))],
            binding(json!({}), json!({ "kind": "Pod", "name": "n1" })),
            500,
            failed("target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\""),
        ),
        row(
            "another uid",
            vec![post(PODS, &pod("web"))],
            binding(json!({ "uid": "x" }), json!({ "name": "n1" })),
            409,
            vec![("/details", json!({ "name": "web", "kind": "pods" }))],
        ),
        row(
            "a gated pod",
            vec![post(PODS, &with(pod("web"), &json!({ "spec": { "schedulingGates": [{ "name": "x.io/a" }] } })))],
            binding(json!({}), json!({ "name": "n1" })),
            409,
            reason(
                "Conflict",
                "Operation cannot be fulfilled on pods/binding \"web\": pod web has non-empty .spec.schedulingGates",
            ),
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn parts() {
    for row in [
        row(
            "a pod's status takes metadata but for owners",
            vec![post(PODS, &pod("web"))],
            merge(
                &format!("{WEB}/status"),
                &json!({
                    "metadata": {
                        "labels": { "s": "t" },
                        "ownerReferences": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x" }],
                    },
                    "spec": { "nodeName": "n1" },
                    "status": { "qosClass": null },
                }),
            ),
            200,
            vec![
                ("/metadata/labels", json!({ "app": "web", "s": "t" })),
                ("/metadata/ownerReferences", Value::Null),
                ("/spec/nodeName", Value::Null),
                ("/status/qosClass", json!("BestEffort")),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "ephemeral containers are all that their path reaches",
            vec![post(PODS, &pod("web"))],
            strategic(
                &format!("{WEB}/ephemeralcontainers"),
                &json!({
                    "metadata": { "labels": { "n": "m" } },
                    "spec": { "nodeName": "n1", "ephemeralContainers": [{ "name": "debug", "image": "box" }] },
                }),
            ),
            200,
            vec![
                ("/metadata/labels", json!({ "app": "web" })),
                ("/metadata/generation", json!(2)),
                ("/spec/nodeName", Value::Null),
                ("/spec/ephemeralContainers/0/name", json!("debug")),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "a resize changes resources and nothing else",
            vec![post(
                PODS,
                &with(
                    pod("web"),
                    &json!({ "spec": { "containers": [
                        { "name": "main", "image": "web:1", "resources": { "requests": { "cpu": "1" } } },
                    ] } }),
                ),
            )],
            strategic(
                &format!("{WEB}/resize"),
                &json!({ "spec": { "containers": [
                    { "name": "main", "image": "web:2", "resources": { "requests": { "cpu": "2" } } },
                ] } }),
            ),
            200,
            vec![
                ("/spec/containers/0/image", json!("web:1")),
                ("/spec/containers/0/resources", json!({ "requests": { "cpu": "2" } })),
            ],
        )
        .sees(PODS, vec!["MODIFIED web"]),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn parts_of_certificate_requests() {
    let csr = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({
        "metadata": { "name": "c" },
        "spec": { "request": CSR, "signerName": "example.com/x", "usages": ["client auth"] },
    });
    let approval = json!({ "status": {
        "conditions": [{ "type": "Approved", "status": "True" }], "certificate": "LS0tLS0=",
    } });
    for row in [
        row(
            "an approval reaches conditions alone, and stamps them",
            vec![post(csr, &request)],
            merge(&format!("{csr}/c/approval"), &approval),
            200,
            vec![(
                "/status",
                json!({ "conditions": [{
                    "type": "Approved", "status": "True",
                    "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
                }] }),
            )],
        ),
        row(
            "a signer does not approve",
            vec![post(csr, &request)],
            merge(
                &format!("{csr}/c/status"),
                &json!({ "status": { "conditions": [{ "type": "Approved", "status": "True" }] } }),
            ),
            200,
            vec![("/status", json!({}))],
        ),
        row(
            "a put changes nothing of a request but its metadata",
            vec![post(csr, &request)],
            merge(
                &format!("{csr}/c"),
                &json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "signerName": "x/y" } }),
            ),
            200,
            vec![("/spec/signerName", json!("example.com/x")), ("/metadata/labels", json!({ "a": "b" }))],
        ),
        row(
            "parts that are not there",
            vec![post(SETS, &replica_set("web"))],
            get(&format!("{SET}/none")),
            404,
            vec![("/reason", json!("NotFound"))],
        ),
    ] {
        check(row).await;
    }
}
