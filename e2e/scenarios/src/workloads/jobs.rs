//! What happens to jobs in the comparison.

use serde_json::{Value, json};

use super::super::job::job;
use super::super::recorded::Script;

pub(super) const SCRIPT: Script = Script {
    namespace: "jobs",
    manifests,
    rounds: &[
        &[
            "create -f plain.json",
            "create -f indexed.json",
            "create -f policy.json",
            "create -f success.json",
            "create -f suspended.json",
            "create -f elastic.json",
        ],
        &[
            "exit 0 plain[]",
            "exit 1 indexed[0]",
            "exit 7 policy[0]",
            "exit 0 success[1]",
            r#"patch job suspended -p {"spec":{"suspend":false}}"#,
            r#"patch job elastic -p {"spec":{"completions":2,"parallelism":2}}"#,
        ],
        &[
            "exit 1 plain[]",
            "exit 1 indexed[0]",
            "exit 42 policy[1]",
            "exit 0 success[0]",
            r#"patch job suspended -p {"spec":{"suspend":true}}"#,
            "exit 0 elastic[0]",
        ],
        &[
            r#"patch job plain -p {"spec":{"parallelism":1}}"#,
            UNREADY,
            r#"patch job suspended -p {"spec":{"template":{"spec":{"nodeSelector":{"zone":"a"}}}}}"#,
            "exit 1 elastic[1]",
            "create -f empty.json",
            "create -f queue.json",
            "create -f failing.json",
            "create -f released.json",
            "create -f deadline.json",
            "wait --for=condition=Failed job/deadline --timeout=30s",
        ],
        &[
            "exit 0 plain[]",
            "delete pod indexed[1] --wait=false",
            r#"patch job suspended -p {"spec":{"suspend":false}}"#,
            "exit 0 elastic[1]",
            "exit 0 queue[]",
            "exit 1 failing[]",
            "label pod released[] batch.kubernetes.io/controller-uid=other --overwrite",
        ],
        &[
            "exit 0 plain[]",
            "exit 0 indexed[2]",
            "exit 1 suspended[]",
            "exit 0 queue[]",
            "annotate job elastic example.com/note=1",
            "delete job released --cascade=background",
        ],
        &["exit 0 indexed[1]", "delete job queue --cascade=background", "label job success example.com/note=1"],
        &["exit 0 indexed[3]"],
    ],
};

/// So that the pod is replaced as soon as it is deleted: it has failed since then.
const UNREADY: &str = r#"patch pod indexed[1] --subresource=status -p {"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#;

fn manifests() -> Vec<Value> {
    let rule =
        |action: &str, code: i32| json!({ "action": action, "onExitCodes": { "operator": "In", "values": [code] } });
    let indexed = |size: i32, rest: Value| {
        let mut spec = json!({ "completions": size, "parallelism": size.min(3), "completionMode": "Indexed" });
        if let (Some(spec), Value::Object(rest)) = (spec.as_object_mut(), rest) {
            spec.extend(rest);
        }
        spec
    };
    let rules = json!({ "rules": [rule("Ignore", 7), rule("FailJob", 42)] });
    let first = json!({ "rules": [{ "succeededIndexes": "0", "succeededCount": 1 }] });
    vec![
        job("plain", json!({ "completions": 3, "parallelism": 2, "backoffLimit": 1 })),
        job("indexed", indexed(4, json!({ "parallelism": 2, "backoffLimitPerIndex": 1 }))),
        job("policy", indexed(2, json!({ "podFailurePolicy": rules }))),
        job("success", indexed(3, json!({ "successPolicy": first }))),
        job("suspended", json!({ "suspend": true, "backoffLimit": 0 })),
        job("elastic", indexed(3, json!({}))),
        job("empty", json!({ "completions": 0 })),
        job("queue", json!({ "parallelism": 2 })),
        job("failing", json!({ "completions": 2, "parallelism": 2, "backoffLimit": 0 })),
        job("released", json!({})),
        job("deadline", json!({ "activeDeadlineSeconds": 1 })),
    ]
}
