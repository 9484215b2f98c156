//! What happens to finished jobs with a time to live in the comparison. A job that is deleted stays as terminating: no
//! garbage collector runs.

use serde_json::Value;

use super::super::recorded::Script;
use super::super::ttl_after_finished::job;

pub(super) const SCRIPT: Script = Script {
    namespace: "finished-jobs",
    manifests,
    rounds: &[
        &[
            "create -f zero.json",
            "create -f half-hour.json",
            "create -f two-hours.json",
            "create -f endless.json",
            "create -f failed.json",
            "create -f running.json",
        ],
        &[
            "finish zero Complete",
            "finish half-hour Complete",
            "finish two-hours Complete",
            "finish endless Complete",
            "finish failed Failed",
            "annotate job running example.com/note=1",
        ],
        &[
            r#"patch job two-hours -p {"spec":{"ttlSecondsAfterFinished":9000}}"#,
            r#"patch job endless -p {"spec":{"ttlSecondsAfterFinished":7200}}"#,
            r#"patch job running -p {"spec":{"ttlSecondsAfterFinished":null}}"#,
        ],
        &[
            r#"patch job two-hours -p {"spec":{"ttlSecondsAfterFinished":60}}"#,
            r#"patch job endless -p {"spec":{"ttlSecondsAfterFinished":null}}"#,
            "finish running Failed",
        ],
        &[
            r#"patch job endless -p {"spec":{"ttlSecondsAfterFinished":0}}"#,
            r#"patch job running -p {"spec":{"ttlSecondsAfterFinished":7200}}"#,
            r#"patch job zero -p {"metadata":{"finalizers":null}}"#,
        ],
        &["create -f zero.json", "label job running example.com/note=1"],
        &["finish zero Failed"],
    ],
};

fn manifests() -> Vec<Value> {
    let lives = [
        ("zero", Some(0)),
        ("half-hour", Some(1800)),
        ("two-hours", Some(7200)),
        ("endless", None),
        ("failed", Some(0)),
        ("running", Some(0)),
    ];
    lives.map(|(name, time_to_live)| job(name, time_to_live)).to_vec()
}
