//! Pods that are missing, surplus or finished.

use jiff::SignedDuration;

use super::fixtures::{NEW, World, created, daemon_pod, daemon_set, deleted, node, now};
use crate::daemonset::backoff::{FailedPodBackoff, FailureKey};
use crate::daemonset::changes::{BURST, CreateReason, DeleteReason};
use crate::daemonset::manage;

fn failure(node: &str) -> FailureKey {
    FailureKey { set: "uid-of-agent".into(), observed_generation: 0, node: node.into() }
}

#[test]
fn every_node_that_should_run_the_daemon_gets_one_pod() {
    let nodes = [node("n1"), node("n2"), node("n3").taint("gpu", "NoSchedule"), node("n4")];
    let pods = [daemon_pod("a", "n1", NEW), daemon_pod("b", "", "old").made_for("n4")];
    let changes = World::of(&daemon_set("agent"), &nodes, &pods).managed();
    assert_eq!(created(&changes), [("n2", CreateReason::Missing)]);
    assert_eq!(deleted(&changes), []);
}

#[test]
fn no_nodes_need_no_pods() {
    assert!(World::of(&daemon_set("agent"), &[], &[]).managed().is_empty());
}

#[test]
fn a_pod_that_is_being_deleted_holds_back_the_next_one_unless_there_is_surge() {
    let (nodes, pods) = ([node("n1")], [daemon_pod("a", "n1", NEW).terminating()]);
    assert!(World::of(&daemon_set("agent"), &nodes, &pods).managed().is_empty());
    let surging = World::of(&daemon_set("agent").rolling(1, 0), &nodes, &pods).managed();
    assert_eq!(created(&surging), [("n1", CreateReason::Missing)]);
}

#[test]
fn a_finished_pod_that_is_being_deleted_holds_back_nothing() {
    let pods = [daemon_pod("a", "n1", NEW).phase("Failed").terminating()];
    let changes = World::of(&daemon_set("agent"), &[node("n1")], &pods).managed();
    assert_eq!(created(&changes), [("n1", CreateReason::Missing)]);
}

#[test]
fn pods_go_from_nodes_that_should_not_run_the_daemon() {
    let nodes = [node("n1").taint("gpu", "NoExecute"), node("n2").taint("gpu", "NoSchedule")];
    let pods = [
        daemon_pod("a", "n1", NEW),
        daemon_pod("b", "n1", "old").terminating(),
        daemon_pod("c", "n2", NEW),
        daemon_pod("d", "n1", NEW).phase("Failed"),
    ];
    let changes = World::of(&daemon_set("agent"), &nodes, &pods).managed();
    assert_eq!(deleted(&changes), [("a", DeleteReason::NotPlaced), ("d", DeleteReason::NotPlaced)]);
    assert_eq!(created(&changes), []);
}

#[test]
fn of_several_pods_the_scheduled_and_oldest_one_stays() {
    let pods = [
        daemon_pod("waiting", "", NEW).made_for("n1").created(900),
        daemon_pod("young", "n1", NEW).created(10),
        daemon_pod("oldest", "n1", "old").created(100),
        daemon_pod("gone", "n1", NEW).created(1000).terminating(),
    ];
    let changes = World::of(&daemon_set("agent"), &[node("n1")], &pods).managed();
    assert_eq!(deleted(&changes), [("young", DeleteReason::Surplus), ("waiting", DeleteReason::Surplus)]);
}

#[test]
fn during_a_surge_an_old_and_a_new_pod_stay_while_the_old_one_serves() {
    let set = daemon_set("agent").rolling(1, 0).min_ready_seconds(60);
    let (old, new) = (daemon_pod("old", "n1", "old").created(100), daemon_pod("new", "n1", NEW).created(50));
    for (name, pods, expected) in [
        ("the new one is not ready", [old.clone().ready(90), new.clone()], None),
        ("the new one is not available yet", [old.clone().ready(90), new.clone().ready(59)], None),
        ("the new one is available", [old.clone().ready(90), new.clone().ready(60)], Some(DeleteReason::Replaced)),
        ("the old one is not ready", [old.clone(), new.clone()], Some(DeleteReason::OldNotReady)),
    ] {
        let changes = World::of(&set, &[node("n1")], &pods).managed();
        let expected: Vec<_> = expected.into_iter().map(|reason| ("old", reason)).collect();
        assert_eq!(deleted(&changes), expected, "{name}");
        assert_eq!(created(&changes), [], "{name}");
    }
}

#[test]
fn during_a_surge_further_pods_go_by_revision() {
    let pods = [
        daemon_pod("old", "n1", "old").created(100).ready(90),
        daemon_pod("older-revision", "n1", "older").created(90).ready(80),
        daemon_pod("new", "n1", NEW).created(50),
        daemon_pod("newer", "n1", NEW).created(40).ready(30),
    ];
    let changes = World::of(&daemon_set("agent").rolling(1, 0), &[node("n1")], &pods).managed();
    let surplus = |name| (name, DeleteReason::Surplus);
    assert_eq!(deleted(&changes), [surplus("older-revision"), surplus("newer")]);
}

#[test]
fn finished_pods_are_deleted_and_failed_ones_wait_for_their_back_off() {
    let nodes = [node("n1"), node("n2"), node("n3")];
    let pods = [
        daemon_pod("failed", "n1", NEW).phase("Failed"),
        daemon_pod("succeeded", "n2", NEW).phase("Succeeded"),
        daemon_pod("waiting", "n3", NEW).phase("Failed"),
    ];
    let world = World::of(&daemon_set("agent"), &nodes, &pods);
    let mut backoff = FailedPodBackoff::default();
    backoff.deleted(failure("n3"), now());
    let changes = manage::plan(&world.snapshot(), world.limits(), &backoff);
    assert_eq!(
        deleted(&changes),
        [("failed", DeleteReason::Failed(failure("n1"))), ("succeeded", DeleteReason::Succeeded("n2".into()))]
    );
    assert_eq!(changes.recheck, Some(now() + SignedDuration::from_secs(1)));
    assert_eq!(created(&changes), [], "the next reconcile replaces them");
}

#[test]
fn a_pod_that_waits_for_a_node_that_does_not_exist_is_deleted() {
    let pods = [daemon_pod("waiting", "", NEW).made_for("gone"), daemon_pod("bound", "gone", NEW)];
    let changes = World::of(&daemon_set("agent"), &[], &pods).managed();
    assert_eq!(deleted(&changes), [("waiting", DeleteReason::NodeMissing)]);
}

#[test]
fn one_reconcile_creates_and_deletes_no_more_than_a_burst() {
    let names: Vec<String> = (0..600).map(|number| format!("n{number:03}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| node(name)).collect();
    assert_eq!(World::of(&daemon_set("agent"), &nodes, &[]).managed().create.len(), BURST);
    let pods: Vec<_> = names.iter().map(|name| daemon_pod(name, name, NEW)).collect();
    let tainted: Vec<_> = names.iter().map(|name| node(name).taint("gpu", "NoExecute")).collect();
    assert_eq!(World::of(&daemon_set("agent"), &tainted, &pods).managed().delete.len(), BURST);
}
