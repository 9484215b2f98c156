//! The status, and the job of a start, as they are written.

use kcm_framework::events::ObjectReference;
use serde_json::{Value, json};

use super::{cron_job, job, time, zones};
use crate::cronjob::job::NewJob;
use crate::cronjob::observe::OwnedJob;
use crate::cronjob::status::StatusUpdate;
use crate::tests::cluster::now;
use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::Job;

#[test]
fn references_that_stay_and_unknown_fields_are_kept() {
    let cron_job = cron_job("* * * * *").active(&["a", "b"]).with("/status/active/1", "later", json!(1));
    let cron_job = cron_job.with("/status", "newer", json!({ "x": 1 })).build();
    let mut update = StatusUpdate {
        active: cron_job.status.active[1..].to_vec(),
        started: None,
        last_schedule_time: None,
        last_successful_time: Some(time("2026-01-02T11:00:00Z")),
    };
    let started = OwnedJob::of(&job("c").build()).metadata;
    update.start(ObjectReference::of(&Job::RESOURCE, &started), now());
    let written: Value = serde_json::from_str(update.document(&cron_job).unwrap().as_str()).unwrap();
    let reference = |name: &str| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "namespace": "shop", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": "5",
        })
    };
    let mut kept = reference("b");
    kept["later"] = json!(1);
    let expected = json!({
        "active": [kept, reference("c")],
        "newer": { "x": 1 },
        "lastScheduleTime": "2026-01-02T12:00:00Z",
        "lastSuccessfulTime": "2026-01-02T11:00:00Z",
    });
    assert_eq!(written["status"], expected);
}

#[test]
fn a_status_is_written_only_if_it_changes() {
    let cron_job = cron_job("* * * * *").active(&["a"]).last_schedule("2026-01-02T12:00:00Z").build();
    let update = StatusUpdate {
        active: cron_job.status.active.to_vec(),
        started: None,
        last_schedule_time: Some(now()),
        last_successful_time: None,
    };
    assert!(!update.is_needed(&cron_job));
    for changed in [
        StatusUpdate { active: Vec::new(), ..update.clone() },
        StatusUpdate { last_schedule_time: Some(time("2026-01-02T12:01:00Z")), ..update.clone() },
        StatusUpdate { last_successful_time: Some(now()), ..update },
    ] {
        assert!(changed.is_needed(&cron_job), "{changed:?}");
    }
    let none = StatusUpdate { active: Vec::new(), started: None, last_schedule_time: None, last_successful_time: None };
    let written: Value = serde_json::from_str(none.document(&cron_job).unwrap().as_str()).unwrap();
    assert_eq!(written["status"].get("active"), None);
}

fn body(cron_job: &super::CronJobBuilder) -> Value {
    let job = NewJob::of(&cron_job.build(), now(), &zones()).expect("the template is an object");
    assert_eq!(job.key.to_string(), "shop/report-29455920");
    serde_json::from_str(&job.body).unwrap()
}

#[test]
fn a_job_has_the_template_an_owner_and_its_time() {
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": "shop",
            "name": "report-29455920",
            "labels": { "app": "report" },
            "annotations": {
                "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-02T12:00:00Z",
                "example.com/note": "a",
            },
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": "cron-uid",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "example/main:1" }] } },
        },
    });
    assert_eq!(body(&cron_job("* * * * *")), expected);
}

#[test]
fn the_time_of_a_job_is_in_the_time_zone_of_the_spec() {
    let annotation =
        |body: &Value| body["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].clone();
    for (zone, expected) in [
        (json!(null), "2026-01-02T12:00:00Z"),
        (json!("Europe/London"), "2026-01-02T12:00:00Z"),
        (json!("Europe/Berlin"), "2026-01-02T13:00:00+01:00"),
        (json!("America/St_Johns"), "2026-01-02T08:30:00-03:30"),
    ] {
        let cron_job = cron_job("TZ=Asia/Tokyo * * * * *").spec("timeZone", zone.clone());
        assert_eq!(annotation(&body(&cron_job)), expected, "{zone}");
    }
}

#[test]
fn a_template_without_metadata_makes_a_job_without_labels() {
    let bare = cron_job("* * * * *").with("/spec/jobTemplate", "metadata", json!(null));
    let metadata = &body(&bare)["metadata"];
    assert_eq!(metadata.get("labels"), None);
    assert_eq!(metadata["annotations"].as_object().map(serde_json::Map::len), Some(1));
}
