//! Which services a change of a pod concerns, and which pods a service selects.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, Service};
use kcm_framework::informers::{Change, Store};
use serde_json::{Value, json};

use super::{addresses, pod, service};
use crate::shared::batching::Urgency;
use crate::shared::services::{SelectingServices, first_label_key, publishing_key, urgency};

fn services() -> SelectingServices {
    let store = Arc::new(Store::<Service>::new());
    for (name, selector) in [
        ("web", json!({ "app": "web" })),
        ("front", json!({ "app": "web", "tier": "front" })),
        ("database", json!({ "app": "database" })),
        ("none", Value::Null),
    ] {
        store.put(service(name, &json!({ "selector": selector }))).expect("no index function panics");
    }
    SelectingServices {
        publishing: store.index("publishing", publishing_key),
        by_selector: store.index("selector", first_label_key),
    }
}

fn concerned(change: &Change<Pod>) -> Vec<String> {
    services().concerned(change, addresses()).iter().map(|key| key.name().to_owned()).collect()
}

#[test]
fn a_pod_concerns_the_services_that_select_it() {
    for (name, labels, change, expected) in [
        ("one label", json!({ "app": "web" }), json!({}), vec!["web"]),
        ("two labels", json!({ "app": "web", "tier": "front" }), json!({}), vec!["front", "web"]),
        ("another value", json!({ "app": "other", "tier": "front" }), json!({}), vec![]),
        ("no label", json!({}), json!({}), vec![]),
        ("another namespace", json!({ "app": "web" }), json!({ "metadata": { "namespace": "other" } }), vec![]),
        ("no address yet", json!({ "app": "web" }), json!({ "status": { "podIPs": [] } }), vec![]),
        ("ended", json!({ "app": "web" }), json!({ "status": { "phase": "Failed" } }), vec![]),
        (
            "terminating",
            json!({ "app": "web" }),
            json!({ "metadata": { "deletionTimestamp": "2026-01-02T12:00:00Z" } }),
            vec!["web"],
        ),
    ] {
        let pod = pod("a", &labels, &change);
        assert_eq!(concerned(&Change::Added(Arc::clone(&pod))), expected, "{name}, added");
        assert_eq!(concerned(&Change::Deleted { last: pod, final_state_known: true }), expected, "{name}, deleted");
    }
}

#[test]
fn an_update_concerns_services_whose_endpoints_it_may_change() {
    let ready = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
    let web = || json!({ "app": "web" });
    for (name, (labels, before), (new_labels, after), expected) in [
        ("nothing that counts", (web(), json!({})), (web(), json!({ "metadata": { "generation": 2 } })), vec![]),
        ("readiness", (web(), ready("False")), (web(), ready("True")), vec!["web"]),
        ("a first condition that is not true", (web(), json!({})), (web(), ready("False")), vec![]),
        (
            "deletion",
            (web(), json!({})),
            (web(), json!({ "metadata": { "deletionTimestamp": "2026-01-02T12:00:00Z" } })),
            vec!["web"],
        ),
        ("the first address", (web(), json!({ "status": { "podIPs": [] } })), (web(), json!({})), vec!["web"]),
        (
            "another address",
            (web(), json!({})),
            (web(), json!({ "status": { "podIPs": [{ "ip": "10.0.0.2" }] } })),
            vec!["web"],
        ),
        (
            "a secondary address of its family is added",
            (web(), json!({})),
            (web(), json!({ "status": { "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }] } })),
            vec!["web"],
        ),
        (
            "the secondary address is another",
            (web(), json!({ "status": { "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }] } })),
            (web(), json!({ "status": { "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.3" }] } })),
            vec!["web"],
        ),
        (
            "the secondary address is removed",
            (web(), json!({ "status": { "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "10.0.0.2" }] } })),
            (web(), json!({})),
            vec!["web"],
        ),
        (
            "an address of IPv6 becomes the first",
            (web(), json!({})),
            (web(), json!({ "status": { "podIPs": [{ "ip": "fd00::1" }, { "ip": "10.0.0.1" }] } })),
            vec!["web"],
        ),
        (
            "its end, although it was not ready",
            (web(), json!({})),
            (web(), json!({ "status": { "phase": "Failed" } })),
            vec!["web"],
        ),
        (
            "readiness without an address",
            (web(), json!({ "status": { "podIPs": [] } })),
            (web(), json!({ "status": { "podIPs": [], "conditions": [{ "type": "Ready", "status": "True" }] } })),
            vec![],
        ),
        (
            "labels: the services that do not select both",
            (web(), json!({})),
            (json!({ "app": "web", "tier": "front" }), json!({})),
            vec!["front"],
        ),
        ("labels: old and new", (web(), json!({})), (json!({ "app": "database" }), json!({})), vec!["database", "web"]),
        (
            "labels and readiness: all services",
            (web(), json!({})),
            (json!({ "app": "web", "tier": "front" }), ready("True")),
            vec!["front", "web"],
        ),
    ] {
        let change = Change::Updated { old: pod("a", &labels, &before), new: pod("a", &new_labels, &after) };
        assert_eq!(concerned(&change), expected, "{name}");
    }
    let same = pod("a", &web(), &json!({}));
    assert!(concerned(&Change::Updated { old: Arc::clone(&same), new: same }).is_empty(), "a resync");
}

#[test]
fn a_change_is_urgent_if_the_pod_serves_before_or_after_it() {
    let state = |ready: &str, change: Value| {
        let mut fields = json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        crate::shared::tests::merge(&mut fields, &change);
        pod("a", &json!({ "app": "web" }), &fields)
    };
    let (unready, ready) = (|| state("False", json!({})), || state("True", json!({})));
    let without_address = || state("False", json!({ "status": { "podIPs": [] } }));
    let ended = || state("False", json!({ "status": { "phase": "Failed" } }));
    let terminating = json!({ "metadata": { "deletionTimestamp": "2026-01-02T12:00:00Z" } });
    let update = |old, new| Change::Updated { old, new };
    let deletion = |last| Change::Deleted { last, final_state_known: true };
    for (name, change, expected) in [
        ("a ready pod is created", Change::Added(ready()), Urgency::Urgent),
        ("an unready pod is created", Change::Added(unready()), Urgency::Lazy),
        ("it gets an address", update(without_address(), unready()), Urgency::Lazy),
        ("it becomes ready", update(unready(), ready()), Urgency::Urgent),
        ("it is not ready any more", update(ready(), unready()), Urgency::Urgent),
        ("it terminates and serves", update(ready(), state("True", terminating.clone())), Urgency::Urgent),
        ("it terminates and does not serve", update(unready(), state("False", terminating.clone())), Urgency::Lazy),
        ("it ends while it serves", update(ready(), ended()), Urgency::Urgent),
        ("it ends unready", update(unready(), ended()), Urgency::Lazy),
        ("it is deleted while it serves", deletion(state("True", terminating.clone())), Urgency::Urgent),
        ("it is deleted unready", deletion(state("False", terminating)), Urgency::Lazy),
        ("it cannot be decoded any more", Change::Undecodable { last: unready() }, Urgency::Urgent),
    ] {
        assert_eq!(urgency(&change, addresses()), expected, "{name}");
    }
}
