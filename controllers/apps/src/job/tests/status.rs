//! The document of a job with another status.

use serde_json::{Value, json};

use super::fixtures::{condition, job};
use crate::job::conditions::{Ending, JobResult, set_suspended};
use crate::job::status::with_status;
use crate::tests::cluster::now;

fn written(document: &kcm_framework::api::Document) -> Value {
    serde_json::from_str(document.as_str()).unwrap()
}

#[test]
fn only_what_differs_is_written_and_unknown_fields_stay() {
    let mut reported = condition("Other", "True", "Kept");
    reported["ofAnotherRelease"] = json!(1.5);
    let job = job()
        .spec("ofAnotherRelease", json!({ "a": 1 }))
        .status("ofAnotherRelease", json!("kept"))
        .status("conditions", json!([condition("Suspended", "True", "JobSuspended"), reported]))
        .build();
    let mut status = job.status.clone();
    set_suspended(&mut status, false, now());
    status.active = 2;
    status.ready = Some(1);
    status.terminating = None;
    status.start_time = Some(now());
    status.failed_indexes = Some("".into());
    status.uncounted.failed.push("uid".into());
    let ending = Ending::new(JobResult::Complete, "Reason", "Message");
    ending.announce(&mut status, now());
    ending.announce(&mut status, now());
    ending.finish(&mut status, now());

    let mut expected = written(&job.document);
    let time = "2026-01-02T12:00:00Z";
    let new = |type_: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastProbeTime": time, "lastTransitionTime": time,
        })
    };
    expected["status"] = json!({
        "active": 2,
        "ready": 1,
        "startTime": time,
        "completionTime": time,
        "failedIndexes": "",
        "uncountedTerminatedPods": { "failed": ["uid"] },
        "ofAnotherRelease": "kept",
        "conditions": [
            new("Suspended", "False", "JobResumed", "Job resumed"),
            expected["status"]["conditions"][1],
            new("SuccessCriteriaMet", "True", "Reason", "Message"),
            new("Complete", "True", "Reason", "Message"),
        ],
    });
    assert_eq!(written(&with_status(&job.document, &job.status, &status).unwrap()), expected);
}

#[test]
fn a_status_that_is_written_reads_the_same() {
    let job = job().build();
    let mut status = job.status.clone();
    (status.succeeded, status.failed, status.completed_indexes) = (3, 1, "0-2".into());
    status.uncounted.succeeded.push("uid".into());
    let document = with_status(&job.document, &job.status, &status).unwrap();
    let read = <kcm_framework::api::views::Job as kcm_framework::api::View>::decode(document.as_str()).unwrap();
    assert_eq!(read.status, status);
}
