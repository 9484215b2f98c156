//! The status of a pod before it is deleted.

use kcm_framework::api::views::PodDisruption;
use kcm_framework::api::{Part as _, View as _};
use serde_json::{Value, json};

use super::disruptions;
use crate::pod_garbage_collector::failed_status::failed_status;
use crate::pod_garbage_collector::plan::Reason;
use crate::tests::cluster::now;
use crate::tests::fixtures::{PodBuilder, ago, pod};

struct Case {
    name: &'static str,
    pod: PodBuilder,
    reason: Reason,
    status: Option<Value>,
}

#[test]
fn a_pod_that_has_not_ended_becomes_failed_and_an_orphan_says_why() {
    let target = |since: &str| {
        json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": since,
        })
    };
    let disrupted = |status: &str| {
        let condition = json!({ "type": "DisruptionTarget", "status": status, "lastTransitionTime": ago(300) });
        pod("a").with("/status", "conditions", json!([condition]))
    };
    let failed = || Some(json!({ "phase": "Failed" }));
    let orphan = |since: &str| Some(json!({ "phase": "Failed", "conditions": [target(since)] }));
    for Case { name, pod, reason, status } in [
        Case { name: "an orphan", pod: pod("a"), reason: Reason::Orphaned, status: orphan(&ago(0)) },
        Case {
            name: "an orphan that is disrupted already keeps the time",
            pod: disrupted("True"),
            reason: Reason::Orphaned,
            status: orphan(&ago(300)),
        },
        Case {
            name: "an orphan that the scheduler disrupts already gets the reason and keeps the time",
            pod: pod("a").with(
                "/status",
                "conditions",
                json!([{
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "PreemptionByScheduler",
                    "lastTransitionTime": ago(300),
                }]),
            ),
            reason: Reason::Orphaned,
            status: orphan(&ago(300)),
        },
        Case {
            name: "an orphan whose disruption was called off",
            pod: disrupted("False"),
            reason: Reason::Orphaned,
            status: orphan(&ago(0)),
        },
        Case { name: "out of service", pod: pod("a"), reason: Reason::OutOfService, status: failed() },
        Case { name: "unscheduled", pod: pod("a").phase("Pending"), reason: Reason::Unscheduled, status: failed() },
        Case { name: "an unknown phase", pod: pod("a").phase("Novel"), reason: Reason::Terminated, status: failed() },
        Case { name: "failed already", pod: pod("a").phase("Failed"), reason: Reason::Orphaned, status: None },
        Case { name: "succeeded", pod: pod("a").phase("Succeeded"), reason: Reason::Orphaned, status: None },
        Case {
            name: "with a generation",
            pod: pod("a").generation(3),
            reason: Reason::OutOfService,
            status: Some(json!({ "phase": "Failed", "observedGeneration": 3 })),
        },
        Case {
            name: "an orphan with a generation",
            pod: pod("a").generation(3),
            reason: Reason::Orphaned,
            status: {
                let mut condition = target(&ago(0));
                condition["observedGeneration"] = json!(3);
                Some(json!({ "phase": "Failed", "observedGeneration": 3, "conditions": [condition] }))
            },
        },
    ] {
        let pod = pod.build();
        let patch = failed_status(&pod, disruptions().of(&pod), reason, now());
        let expected = status.map(|status| json!({ "metadata": { "uid": "uid-of-a" }, "status": status }));
        assert_eq!(patch, expected, "{name}");
    }
}

#[test]
fn times_are_in_whole_seconds() {
    let pod = kcm_framework::api::views::Pod::decode(r#"{"metadata":{"uid":"u"}}"#).unwrap();
    let time = "2026-01-02T12:00:00.75Z".parse().unwrap();
    let patch = failed_status(&pod, PodDisruption::empty(), Reason::Orphaned, time).unwrap();
    assert_eq!(patch["status"]["conditions"][0]["lastTransitionTime"], "2026-01-02T12:00:00Z");
}
