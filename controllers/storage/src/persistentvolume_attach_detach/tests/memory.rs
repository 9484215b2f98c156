use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::View as _;

use super::super::live::Use;
use super::super::memory::{Facts, Memories, Operation};
use super::super::names::plugin_name;
use super::super::plan::{Failure, Step};
use super::super::state::AttachmentNames;
use super::super::steps::Action;
use super::super::view::LiveNode;

const NOW: Timestamp = Timestamp::constant(1_000_000, 0);

#[test]
fn attempts_fail_with_back_off() {
    let mut operation = Operation::default();
    operation.start(NOW);
    let later = NOW + SignedDuration::from_secs(10);
    operation.start(later);
    assert_eq!(operation.elapsed(later), SignedDuration::from_secs(10), "it has started before");
    operation.fail(later);
    assert_eq!(operation.next_attempt(), Some(later + SignedDuration::from_millis(500)));
    let facts = Facts { attach: operation, ..Facts::default() };
    assert_eq!(facts.memory(true).attempt_since, operation.next_attempt(), "the driver has its time again");
    assert_eq!(facts.memory(false).attempt_since, None, "it is no attempt to detach");
    operation.fail(later);
    assert_eq!(operation.next_attempt(), Some(later + SignedDuration::from_secs(1)));
    assert_eq!(operation.elapsed(later), SignedDuration::from_secs(10), "since the first attempt");
}

#[test]
fn facts_without_content_take_no_memory() {
    let memories = Memories::default();
    let facts = Facts { was_forced: true, ..Facts::default() };
    memories.set("v", BTreeMap::from([("a".to_owned(), facts), ("b".to_owned(), Facts::default())]));
    assert_eq!(memories.of("v"), BTreeMap::from([("a".to_owned(), facts)]));
    memories.set("v", BTreeMap::from([("a".to_owned(), Facts::default())]));
    assert!(memories.of("v").is_empty());
}

#[test]
fn attachments_lead_to_their_volume() {
    let names = AttachmentNames::default();
    names.set("v", vec!["csi-1".to_owned(), "csi-2".to_owned()]);
    names.set("v", vec!["csi-2".to_owned()]);
    assert_eq!((names.volume("csi-1"), names.volume("csi-2")), (None, Some("v".to_owned())));
    names.set("v", Vec::new());
    assert_eq!(names.volume("csi-2"), None);
}

#[test]
fn ad_21_ad_23_failures_have_upstreams_messages() {
    let volume = "kubernetes.io/csi/d^h";
    let attach = |failure| Action::of(&Step::FailAttach(failure), volume);
    let detach = |failure| Action::of(&Step::FailDetach(failure), volume);
    let timed_out =
        |driver, verb| format!("timed out waiting for external-attacher of {driver} CSI driver to {verb} volume h");
    assert_eq!(attach(Failure::Driver("no disk")), Action::FailAttach("no disk".to_owned()));
    let deleting = "volume attachment is being deleted".to_owned();
    assert_eq!(attach(Failure::BeingDeleted), Action::FailAttach(deleting));
    assert_eq!(attach(Failure::TimedOut), Action::FailAttach(timed_out("d", "attach")));
    assert_eq!(detach(Failure::TimedOut), Action::FailDetach(timed_out("unknown", "detach")));
}

#[test]
fn ad_23_a_live_node_shows_the_use_of_a_volume() {
    let node = |status: &str| LiveNode::decode(&format!(r#"{{"metadata":{{"name":"n"}},"status":{status}}}"#)).unwrap();
    for (name, status, expected) in [
        ("mounted", r#"{"volumesInUse":["v"],"volumesAttached":[{"name":"v","devicePath":""}]}"#, Use::Mounted),
        ("reported", r#"{"volumesAttached":[{"name":"v","devicePath":""}]}"#, Use::Reported),
        ("others", r#"{"volumesInUse":["w"],"volumesAttached":null}"#, Use::None),
    ] {
        assert_eq!(Use::of("v", Some(&node(status))), expected, "{name}");
    }
    assert_eq!(Use::of("v", None), Use::None, "a deleted node");
}

#[test]
fn metrics_name_plugins_as_upstream() {
    for (volume, plugin) in [
        ("kubernetes.io/csi/d^h", Some("kubernetes.io/csi:d")),
        ("kubernetes.io/fc/[w]", Some("kubernetes.io/fc")),
        ("kubernetes.io/iscsi/p:i:0", Some("kubernetes.io/iscsi")),
        ("vendor/driver/pv", None),
    ] {
        assert_eq!(plugin_name(volume).as_deref(), plugin);
    }
}
