use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::api::Uid;

use super::super::actual::{NodeState, observe};
use super::super::desired::{Desired, Wanted};
use super::super::events::PodName;
use super::super::plan::{Attachment, Backend, Health, Memory, OnNode, Plan, Settings, Step, plan};
use super::super::volume::Attachable;

const VOLUME: &str = "kubernetes.io/csi/d^h";
const NOW: Timestamp = Timestamp::constant(1_000_000, 0);
const SETTINGS: Settings = Settings { disable_force_detach_on_timeout: false, disable_verification: false };

fn node(health: Health, is_reported: bool, is_in_use: bool) -> NodeState {
    NodeState { health, is_reported, is_in_use }
}

fn desired(node: &str, is_shared: bool) -> BTreeMap<String, Wanted> {
    let volume = Attachable {
        unique_name: VOLUME.to_owned(),
        spec_name: "pv".to_owned(),
        is_shared,
        inline: None,
        is_migrated: false,
    };
    let mut desired = Desired::default();
    let pod = PodName { namespace: "ns".to_owned(), name: "p".to_owned() };
    desired.add(&Uid::from("1"), &pod, node, vec![volume]);
    desired.wanted(VOLUME)
}

fn attached() -> Attachment<'static> {
    Attachment { is_attached: true, ..Attachment::default() }
}

#[test]
fn ad_1_ad_17_health_of_nodes() {
    for (name, [is_managed, is_ready, is_out_of_service], expected) in [
        ("ready", [true, true, false], Health::Ready),
        ("not ready", [true, false, false], Health::NotReady),
        ("out of service", [true, false, true], Health::OutOfService { is_ready: false }),
        ("out of service and ready", [true, true, true], Health::OutOfService { is_ready: true }),
        ("T-15: unmanaged", [false, false, true], Health::Unmanaged),
    ] {
        assert_eq!(NodeState::health(is_managed, is_ready, is_out_of_service), expected, "{name}");
    }
}

#[test]
fn ad_12_ad_13_objects_show_the_state() {
    let nodes = BTreeMap::from([
        ("deleted".to_owned(), NodeState::absent(false)),
        ("idle".to_owned(), NodeState::absent(true)),
        ("reports".to_owned(), node(Health::Ready, true, false)),
        ("uses".to_owned(), node(Health::NotReady, false, true)),
        ("wants".to_owned(), node(Health::Ready, false, false)),
    ]);
    let desired = desired("wants", false);
    let attachments = BTreeMap::from([("deleted", attached()), ("reports", attached())]);
    let memory = |node: &str, is_wanted| {
        assert_eq!(is_wanted, node == "wants");
        Memory { was_forced: node == "uses", ..Memory::default() }
    };
    let observed = observe(VOLUME, &desired, &nodes, &attachments, memory);
    let state = |on: &OnNode<'_>| {
        let has_attachment = on.attachment.is_some();
        (
            on.node.to_owned(),
            on.health,
            [on.is_wanted, on.is_reported, on.is_in_use, has_attachment, on.memory.was_forced],
        )
    };
    assert_eq!((observed.backend, observed.is_shared), (Backend::Csi, false));
    assert_eq!(
        observed.nodes.iter().map(state).collect::<Vec<_>>(),
        [
            ("deleted".to_owned(), Health::Absent, [false, false, true, true, false]),
            ("idle".to_owned(), Health::Absent, [false, false, false, false, false]),
            ("reports".to_owned(), Health::Ready, [false, true, false, true, false]),
            ("uses".to_owned(), Health::NotReady, [false, false, true, false, true]),
            ("wants".to_owned(), Health::Ready, [true, false, false, false, false]),
        ]
    );
}

#[test]
fn b_15_a_restart_at_rest_writes_nothing() {
    let nodes = BTreeMap::from([("n".to_owned(), node(Health::Ready, true, true))]);
    let (desired, attachments) = (desired("n", false), BTreeMap::from([("n", attached())]));
    let observed = observe(VOLUME, &desired, &nodes, &attachments, |_, _| Memory::default());
    assert_eq!(plan(&observed, SETTINGS, NOW), Plan::default());
}

#[test]
fn t_19_a_restart_detaches_what_the_node_does_not_use_at_once() {
    let nodes = BTreeMap::from([("n".to_owned(), node(Health::Ready, false, false))]);
    let (desired, attachments) = (BTreeMap::new(), BTreeMap::from([("n", attached())]));
    let observed = observe(VOLUME, &desired, &nodes, &attachments, |_, _| Memory::default());
    let steps = vec![("n", Step::StartUnmountWait), ("n", Step::Detach(None))];
    assert_eq!(plan(&observed, SETTINGS, NOW), Plan { steps, look_again: None });
}

#[test]
fn names_decide_the_backend() {
    let (desired, nodes) = (BTreeMap::new(), BTreeMap::new());
    let backend = |name| observe(name, &desired, &nodes, &BTreeMap::new(), |_, _| Memory::default()).backend;
    assert_eq!(backend("kubernetes.io/fc/[w]"), Backend::ReportOnly);
    assert_eq!(backend("vendor/driver/pv"), Backend::Unknown);
}
