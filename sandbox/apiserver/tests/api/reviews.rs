//! Reviews get a response and are never stored.

use serde_json::{Value, json};

use crate::rows::{check, reason, row};
use crate::support::{get, post};

const ACCESS: &str = "/apis/authorization.k8s.io/v1";
const IDENTITY: &str = "/apis/authentication.k8s.io/v1";

#[tokio::test(start_paused = true)]
async fn reviews() {
    let may = |kind: &str, spec: Value| post(&format!("{ACCESS}/{kind}"), &json!({ "spec": spec }));
    let pods = || json!({ "verb": "get", "resource": "pods", "namespace": "x" });
    for row in [
        row(
            "who asks may do everything",
            vec![],
            may("selfsubjectaccessreviews", json!({ "resourceAttributes": pods() })),
            201,
            vec![
                ("/kind", json!("SelfSubjectAccessReview")),
                ("/metadata", json!({})),
                ("/spec/resourceAttributes", pods()),
                ("/status", json!({ "allowed": true })),
            ],
        ),
        row(
            "others may too",
            vec![],
            may("subjectaccessreviews", json!({ "user": "bob", "resourceAttributes": pods() })),
            201,
            vec![("/status/allowed", json!(true))],
        ),
        row(
            "no user and no group",
            vec![],
            may("subjectaccessreviews", json!({ "resourceAttributes": pods() })),
            422,
            vec![(
                "/message",
                json!(
                    ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be specified"
                ),
            )],
        ),
        row(
            "no attributes",
            vec![],
            may("selfsubjectaccessreviews", json!({})),
            422,
            vec![("/details/causes/0/field", json!("spec"))],
        ),
        row(
            "a local review is about its own namespace",
            vec![],
            may("namespaces/default/localsubjectaccessreviews", json!({ "user": "bob", "resourceAttributes": pods() })),
            422,
            vec![("/details/causes/0/message", json!("Invalid value: \"x\": must match metadata.namespace"))],
        ),
        row(
            "the rules allow everything",
            vec![],
            may("selfsubjectrulesreviews", json!({ "namespace": "default" })),
            201,
            vec![
                ("/spec", json!({})),
                ("/status/resourceRules/0/verbs", json!(["*"])),
                ("/status/incomplete", json!(false)),
            ],
        ),
        row(
            "rules without a namespace",
            vec![],
            may("selfsubjectrulesreviews", json!({})),
            400,
            reason("BadRequest", "no namespace on request"),
        ),
        row(
            "one asks who one is",
            vec![],
            post(&format!("{IDENTITY}/selfsubjectreviews"), &json!({})),
            201,
            vec![("/status/userInfo/groups", json!(["system:masters", "system:authenticated"]))],
        ),
        row(
            "a token that is not known",
            vec![],
            post(&format!("{IDENTITY}/tokenreviews"), &json!({ "spec": { "token": "abc" } })),
            201,
            vec![("/status", json!({ "user": {}, "error": "invalid bearer token" }))],
        ),
        row(
            "reviews are not listed",
            vec![],
            get(&format!("{IDENTITY}/tokenreviews")),
            405,
            vec![("/reason", json!("MethodNotAllowed"))],
        ),
        row(
            "reviews have no names",
            vec![],
            get(&format!("{ACCESS}/selfsubjectaccessreviews/x")),
            404,
            vec![("/reason", json!("NotFound"))],
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn anonymous_users_may_do_nothing() {
    let spec = json!({ "user": "system:anonymous", "resourceAttributes": { "verb": "get", "resource": "pods" } });
    let review = post(&format!("{ACCESS}/subjectaccessreviews"), &json!({ "spec": spec }));
    check(row("anonymous", vec![], review, 201, vec![("/status/allowed", json!(false))])).await;
}
