//! What happens to cron jobs in the comparison.
//!
//! The start of the schedule is the beginning of the year, which no run meets, in one time zone or another.

use serde_json::{Value, json};

use super::super::cronjob::cron_job;
use super::super::recorded::Script;

pub(super) const SCRIPT: Script = Script {
    namespace: "cron-jobs",
    manifests,
    rounds: &[
        &[
            "create -f report.json",
            "create -f strict.json",
            "create -f swap.json",
            "create -f stopped.json",
            "create -f late.json",
        ],
        &["due report", "due strict", "due swap", "due stopped", "due late"],
        &[
            r#"patch cronjob report -p {"spec":{"timeZone":"Pacific/Kiritimati"}}"#,
            r#"patch cronjob strict -p {"spec":{"timeZone":"Pacific/Kiritimati"}}"#,
            r#"patch cronjob swap -p {"spec":{"timeZone":"Pacific/Kiritimati"}}"#,
            r#"patch cronjob stopped -p {"spec":{"suspend":false}}"#,
            r#"patch cronjob late -p {"spec":{"startingDeadlineSeconds":null}}"#,
        ],
        &["due report", "due strict", "due swap"],
        &[
            "finish report[] Complete",
            "finish late[] Failed",
            "finish strict[] Complete",
            "create job by-hand --from=cronjob/stopped",
            "annotate cronjob swap example.com/note=1",
        ],
        &[
            r#"patch cronjob report -p {"spec":{"successfulJobsHistoryLimit":0}}"#,
            r#"patch cronjob late -p {"spec":{"failedJobsHistoryLimit":0}}"#,
            r#"patch cronjob swap -p {"spec":{"suspend":true}}"#,
            "finish by-hand Complete",
        ],
        &["finish report[] Failed", "delete cronjob late --cascade=background", "delete job by-hand"],
    ],
};

fn manifests() -> Vec<Value> {
    let of = |name: &str, field: &str, value: Value| {
        let mut made = cron_job(name, "0 0 1 1 *");
        made["spec"][field] = value;
        made
    };
    vec![
        of("report", "concurrencyPolicy", json!("Allow")),
        of("strict", "concurrencyPolicy", json!("Forbid")),
        of("swap", "concurrencyPolicy", json!("Replace")),
        of("stopped", "suspend", json!(true)),
        of("late", "startingDeadlineSeconds", json!(10)),
    ]
}
