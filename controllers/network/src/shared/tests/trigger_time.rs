//! The trigger time.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{Pod, Service};
use serde_json::json;

use super::{addresses, pod, service};
use crate::shared::trigger_time::{TriggerTimes, annotation_value};

fn ready_at(name: &str, time: &str) -> Arc<Pod> {
    let condition = json!({ "type": "Ready", "status": "True", "lastTransitionTime": time });
    pod(name, &json!({}), &json!({ "status": { "conditions": [condition] } }))
}

#[test]
fn it_is_the_earliest_change_that_was_not_seen() {
    const CREATED: &str = "2026-01-02T12:00:00Z";
    let at = |minute: u32| format!("2026-01-02T12:{minute:02}:00Z");
    let web = service("web", &json!({}));
    let times = TriggerTimes::default();
    let (a5, b6, a7) = (ready_at("a", &at(5)), ready_at("b", &at(6)), ready_at("a", &at(7)));
    let (b4, c2, unready) = (ready_at("b", &at(4)), ready_at("c", &at(2)), pod("d", &json!({}), &json!({})));
    for (name, pods, expected) in [
        ("a service that is new to it", vec![&a5], Some(CREATED.to_owned())),
        ("nothing new", vec![&a5], None),
        ("a new pod", vec![&a5, &b6], Some(at(6))),
        ("a pod that changed", vec![&a7, &b6], Some(at(7))),
        ("a pod that went back in time", vec![&a7, &b4], None),
        ("a pod that is older than what was seen of others", vec![&a7, &b4, &c2], Some(at(2))),
        ("the earlier of two", vec![&a7, &b6, &ready_at("c", &at(8))], Some(at(6))),
        ("a pod without the condition", vec![&unready], None),
        ("a pod that returns", vec![&c2], Some(at(2))),
    ] {
        let pods: Vec<_> = pods.into_iter().cloned().collect();
        assert_eq!(times.next(&web, &pods, addresses()).map(annotation_value), expected, "{name}");
    }
    times.forget(&web.metadata.key);
    assert_eq!(times.next(&web, &[c2], addresses()).map(annotation_value), Some(CREATED.to_owned()), "forgotten");
}

#[test]
fn a_service_that_is_recreated_is_a_change_also_if_its_deletion_was_not_seen() {
    let created = |time: &str| {
        let metadata = json!({ "namespace": "shop", "name": "web", "uid": time, "creationTimestamp": time });
        Service::decode(&json!({ "metadata": metadata }).to_string()).unwrap()
    };
    let pods = [ready_at("a", "2026-01-02T12:05:00Z"), ready_at("b", "2026-01-02T12:06:00Z")];
    let (first, second) = ("2026-01-02T12:00:00Z", "2026-01-02T12:07:00Z");
    for is_deletion_seen in [true, false] {
        let times = TriggerTimes::default();
        let next = |time| times.next(&created(time), &pods, addresses()).map(annotation_value);
        assert_eq!(next(first).as_deref(), Some(first));
        if is_deletion_seen {
            times.forget(&created(first).metadata.key);
        }
        assert_eq!(next(second).as_deref(), Some(second), "deletion seen: {is_deletion_seen}");
    }
}
