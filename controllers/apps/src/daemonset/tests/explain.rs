//! Plans in words.

use super::fixtures::{NEW, World, daemon_pod, daemon_set, node};
use crate::daemonset::backoff::FailedPodBackoff;
use crate::daemonset::plan::plan;

fn words(world: &World) -> String {
    let snapshot = world.snapshot();
    plan(&snapshot, world.limits(), &FailedPodBackoff::default()).explain(&snapshot)
}

#[test]
fn plans_say_what_and_why_and_which_nodes_have_no_pod() {
    let nodes = [node("n1"), node("n2").taint("gpu", "NoSchedule"), node("n3").taint("gpu", "NoExecute")];
    let world = World::of(&daemon_set("agent"), &nodes, &[daemon_pod("a", "n3", NEW)]);
    assert_eq!(
        words(&world),
        "creates pods for n1, as these nodes should run the daemon and have no pod; deletes a, as their nodes should not \
         run the daemon; no pod for n3, as the daemon does not tolerate the taint gpu:NoExecute; no pod for n2, as the \
         daemon does not tolerate the taint gpu:NoSchedule, which lets pods stay (1 nodes should run the daemon, 0 have a \
         pod, 0 of the present template, 0 available)"
    );
}

#[test]
fn a_rollout_says_so_and_long_lists_are_cut() {
    let names = ["n1", "n2", "n3", "n4", "n5"];
    let pods = names.map(|name| daemon_pod(name, name, "old"));
    assert_eq!(
        words(&World::of(&daemon_set("agent"), &names.map(node), &pods)),
        "rolls the template out; deletes n1, n2, n3 and 2 more, as they have an old template and are not available (5 \
         nodes should run the daemon, 5 have a pod, 0 of the present template, 0 available)"
    );
    let idle = World::of(&daemon_set("agent"), &[node("n1")], &[daemon_pod("a", "n1", NEW)]);
    assert!(words(&idle).starts_with("creates and deletes no pod ("), "{}", words(&idle));
}
