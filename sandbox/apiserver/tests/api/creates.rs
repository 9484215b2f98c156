//! Creations.

use serde_json::{Value, json};

use crate::rows::{MAPS, PODS, SETS, WEB, check, reason, row};
use crate::support::{delete, pod, post, replica_set, with};

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn creates() {
    let bound = with(pod("web"), &json!({ "spec": { "nodeName": "n1" } }));
    for row in [
        row(
            "a pod starts pending, with defaults",
            vec![],
            post(PODS, &pod("web")),
            201,
            vec![
                ("/metadata/namespace", json!("default")),
                ("/metadata/generation", json!(1)),
                ("/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z")),
                ("/status/phase", json!("Pending")),
                ("/spec/restartPolicy", json!("Always")),
                ("/spec/terminationGracePeriodSeconds", json!(30)),
                ("/spec/containers/0/imagePullPolicy", json!("IfNotPresent")),
            ],
        )
        .sees(PODS, vec!["ADDED web"]),
        row(
            "a volume attributes class is protected from deletion",
            vec![],
            post(
                "/apis/storage.k8s.io/v1/volumeattributesclasses",
                &json!({
                    "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": { "name": "gold" },
                    "driverName": "csi.example.com", "parameters": { "iops": "1" },
                }),
            ),
            201,
            vec![("/metadata/finalizers", json!(["kubernetes.io/vac-protection"]))],
        ),
        row(
            "a client cannot choose status, uid or times",
            vec![],
            post(
                SETS,
                &with(
                    replica_set("web"),
                    &json!({
                        "metadata": { "deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 7 },
                        "status": { "replicas": 9 },
                    }),
                ),
            ),
            201,
            vec![
                ("/status", json!({ "replicas": 0 })),
                ("/metadata/generation", json!(1)),
                ("/metadata/deletionTimestamp", Value::Null),
                ("/spec/replicas", json!(1)),
            ],
        )
        .sees(SETS, vec!["ADDED web"]),
        row(
            "a deployment gets its strategy",
            vec![],
            post(
                "/apis/apps/v1/namespaces/default/deployments",
                &with(replica_set("web"), &json!({ "kind": "Deployment" })),
            ),
            201,
            vec![
                ("/spec/strategy/type", json!("RollingUpdate")),
                ("/spec/strategy/rollingUpdate/maxSurge", json!("25%")),
                ("/spec/revisionHistoryLimit", json!(10)),
                ("/spec/progressDeadlineSeconds", json!(600)),
            ],
        ),
        row(
            "a namespace has a phase, a label and a finalizer in its spec",
            vec![],
            post("/api/v1/namespaces", &json!({ "metadata": { "name": "a" } })),
            201,
            vec![
                ("/kind", json!("Namespace")),
                ("/status/phase", json!("Active")),
                ("/spec/finalizers", json!(["kubernetes"])),
                ("/metadata/labels", json!({ "kubernetes.io/metadata.name": "a" })),
                ("/metadata/generation", Value::Null),
            ],
        ),
        row(
            "a taken name",
            vec![post(PODS, &pod("web"))],
            post(PODS, &pod("web")),
            409,
            reason("AlreadyExists", "pods \"web\" already exists"),
        ),
        row(
            "a taken name in a group",
            vec![post(SETS, &replica_set("web"))],
            post(SETS, &replica_set("web")),
            409,
            vec![
                ("/message", json!("replicasets.apps \"web\" already exists")),
                ("/details", json!({ "name": "web", "group": "apps", "kind": "replicasets" })),
            ],
        ),
        row(
            "no name at all",
            vec![],
            post(MAPS, &json!({ "metadata": {} })),
            422,
            reason(
                "Invalid",
                "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
            ),
        ),
        row(
            "a dry run says what would be, and writes nothing",
            vec![],
            post(&format!("{PODS}?dryRun=All"), &pod("web")),
            201,
            vec![("/status/phase", json!("Pending")), ("/metadata/resourceVersion", Value::Null)],
        ),
        row(
            "an unknown dry run",
            vec![],
            post(&format!("{PODS}?dryRun=Some"), &pod("web")),
            422,
            vec![("/details/causes/0/field", json!("dryRun"))],
        ),
        row(
            "a version on a new object",
            vec![],
            post(PODS, &with(pod("web"), &json!({ "metadata": { "resourceVersion": "1" } }))),
            500,
            vec![("/message", json!("resourceVersion should not be set on objects to be created"))],
        ),
        row(
            "an absent namespace",
            vec![],
            post("/api/v1/namespaces/a/pods", &pod("web")),
            404,
            reason("NotFound", "namespaces \"a\" not found"),
        ),
        row(
            "a terminating namespace",
            vec![post("/api/v1/namespaces", &json!({ "metadata": { "name": "a" } })), delete("/api/v1/namespaces/a")],
            post("/api/v1/namespaces/a/pods", &pod("web")),
            403,
            vec![
                ("/reason", json!("Forbidden")),
                (
                    "/message",
                    json!(
                        "pods \"web\" is forbidden: unable to create new content in namespace a because it is being terminated"
                    ),
                ),
                (
                    "/details/causes",
                    json!([{
                        "reason": "NamespaceTerminating", "message": "namespace a is being terminated",
                        "field": "metadata.namespace",
                    }]),
                ),
            ],
        ),
        row(
            "another namespace in the body",
            vec![],
            post(PODS, &with(pod("web"), &json!({ "metadata": { "namespace": "kube-system" } }))),
            400,
            reason(
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            ),
        ),
        row(
            "another kind in the body",
            vec![],
            post(PODS, &with(pod("web"), &json!({ "kind": "ReplicaSet" }))),
            400,
            vec![("/reason", json!("BadRequest"))],
        ),
        row(
            "another version in the body",
            vec![],
            post(PODS, &with(pod("web"), &json!({ "apiVersion": "v2" }))),
            400,
            vec![("/reason", json!("BadRequest"))],
        ),
        row(
            "JSON that claims to be protobuf",
            vec![],
            post(PODS, &pod("web")).header("content-type", "application/vnd.kubernetes.protobuf"),
            400,
            vec![("/reason", json!("BadRequest"))],
        ),
        row(
            "a binding assigns a node, once",
            vec![post(PODS, &pod("web"))],
            post(&format!("{WEB}/binding"), &json!({ "metadata": { "name": "web" }, "target": { "name": "n1" } })),
            201,
            vec![("/status", json!("Success"))],
        )
        .sees("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", vec!["ADDED web"]),
        row(
            "a second binding",
            vec![post(PODS, &bound)],
            post(&format!("{WEB}/binding"), &json!({ "metadata": { "name": "web" }, "target": { "name": "n2" } })),
            409,
            reason(
                "Conflict",
                "Operation cannot be fulfilled on pods/binding \"web\": pod web is already assigned to node \"n1\"",
            ),
        ),
    ] {
        check(row).await;
    }
}
