use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::api::Uid;

use super::super::actual::{NodeState, observe};
use super::super::desired::Desired;
use super::super::events::PodName;
use super::super::plan::{Attachment, Backend, Health, Memory, OnNode, Plan, Settings, Step, plan};
use super::super::report::ReportedVolume;
use super::super::volume::Attachable;

const VOLUME: &str = "kubernetes.io/csi/d^h";
const NOW: Timestamp = Timestamp::constant(1_000_000, 0);
const SETTINGS: Settings = Settings { disable_force_detach_on_timeout: false };

fn node(health: Health, reported: &[&str], in_use: &[&str]) -> NodeState {
    let entry = |name: &&str| ReportedVolume { name: (*name).to_owned(), device_path: String::new() };
    let in_use = in_use.iter().map(|name| (*name).to_owned()).collect();
    NodeState { health, reported: reported.iter().map(entry).collect(), in_use }
}

fn desired(node: &str, is_shared: bool) -> Desired {
    let volume = Attachable { unique_name: VOLUME.to_owned(), spec_name: "pv".to_owned(), is_shared, inline: None };
    let mut desired = Desired::default();
    let pod = PodName { namespace: "ns".to_owned(), name: "p".to_owned() };
    desired.add(&Uid::from("1"), &pod, node, vec![volume]);
    desired
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
        ("idle".to_owned(), node(Health::Ready, &["kubernetes.io/csi/d^other"], &[])),
        ("reports".to_owned(), node(Health::Ready, &[VOLUME], &[])),
        ("uses".to_owned(), node(Health::NotReady, &[], &[VOLUME])),
    ]);
    let desired = desired("wants", false);
    let attachments = BTreeMap::from([("deleted", attached()), ("reports", attached())]);
    let memory = BTreeMap::from([("uses", Memory { was_forced: true, ..Memory::default() })]);
    let observed = observe(VOLUME, &desired, &nodes, &attachments, &memory);
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
            ("deleted".to_owned(), Health::NotReady, [false, false, false, true, false]),
            ("reports".to_owned(), Health::Ready, [false, true, false, true, false]),
            ("uses".to_owned(), Health::NotReady, [false, false, true, false, true]),
            ("wants".to_owned(), Health::NotReady, [true, false, false, false, false]),
        ]
    );
}

#[test]
fn b_15_a_restart_at_rest_writes_nothing() {
    let nodes = BTreeMap::from([("n".to_owned(), node(Health::Ready, &[VOLUME], &[VOLUME]))]);
    let (desired, attachments) = (desired("n", false), BTreeMap::from([("n", attached())]));
    let observed = observe(VOLUME, &desired, &nodes, &attachments, &BTreeMap::new());
    assert_eq!(plan(&observed, SETTINGS, NOW), Plan::default());
}

#[test]
fn t_19_a_restart_detaches_what_the_node_does_not_use_at_once() {
    let nodes = BTreeMap::from([("n".to_owned(), node(Health::Ready, &[], &[]))]);
    let (desired, attachments) = (Desired::default(), BTreeMap::from([("n", attached())]));
    let observed = observe(VOLUME, &desired, &nodes, &attachments, &BTreeMap::new());
    let steps = vec![("n", Step::StartUnmountWait), ("n", Step::Detach(None))];
    assert_eq!(plan(&observed, SETTINGS, NOW), Plan { steps, look_again: None });
}

#[test]
fn names_decide_the_backend() {
    let (desired, nodes) = (Desired::default(), BTreeMap::new());
    let backend = |name| observe(name, &desired, &nodes, &BTreeMap::new(), &BTreeMap::new()).backend;
    assert_eq!(backend("kubernetes.io/fc/[w]"), Backend::ReportOnly);
    assert_eq!(backend("vendor/driver/pv"), Backend::Unknown);
}
