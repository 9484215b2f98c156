//! Rolling updates, with a watcher of what they promise.

use std::time::Duration;

use serde_json::json;

use crate::daemonset::tests::cluster::{
    Cluster, one_each_and_unavailable_at_most, rolls_out, run_pods, surging_at_most, target, with_image,
};
use crate::daemonset::tests::fixtures::daemon_set;

const NODES: &[&str] = &["n1", "n2", "n3", "n4", "n5"];

#[tokio::test(start_paused = true)]
async fn an_update_takes_no_more_nodes_down_than_it_may() {
    for unavailable in [1, 2] {
        let cluster = Cluster::start(NODES, |_| {}).await;
        cluster.create(&daemon_set("agent").rolling(0, unavailable));
        rolls_out(&cluster, |_| {}).await;
        cluster.patch(&with_image("image:2"));
        let allowed = usize::try_from(unavailable).expect("it is small");
        rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, NODES.len(), allowed)).await;
        assert!(cluster.images().iter().all(|(_, image)| image == "image:2"), "{:?}", cluster.images());
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_with_surge_keeps_every_node_served() {
    let cluster = Cluster::start(NODES, |_| {}).await;
    cluster.create(&daemon_set("agent").rolling(2, 0));
    rolls_out(&cluster, |_| {}).await;
    cluster.patch(&with_image("image:2"));
    rolls_out(&cluster, |pods| surging_at_most(pods, NODES.len(), 2)).await;
    assert!(cluster.images().iter().all(|(_, image)| image == "image:2"), "{:?}", cluster.images());
}

/// Upstream's case is `TestDaemonSetUpdatesPodsNotMatchTainstWithMaxSurge`.
#[tokio::test(start_paused = true)]
async fn an_update_with_surge_that_drops_a_toleration_leaves_the_tainted_node_alone() {
    let cluster = Cluster::start(NODES, |_| {}).await;
    cluster.taint("n1", &json!([{ "key": "control-plane", "effect": "NoSchedule" }]));
    let tolerations = json!([{ "key": "control-plane", "operator": "Exists" }]);
    cluster.create(&daemon_set("agent").rolling(1, 0).pod_spec("tolerations", tolerations));
    rolls_out(&cluster, |_| {}).await;
    assert_eq!(cluster.pods().len(), NODES.len());
    cluster.patch(&json!({ "spec": { "template": { "spec": { "tolerations": null } } } }));
    let is_elsewhere = |pod: &serde_json::Value| target(pod) != "n1";
    rolls_out(&cluster, |pods| {
        let others: Vec<_> = pods.iter().filter(|pod| is_elsewhere(pod)).cloned().collect();
        surging_at_most(&others, NODES.len() - 1, 1);
        let on_first = pods.iter().filter(|pod| !is_elsewhere(pod)).count();
        assert!(on_first <= 1, "no new pod for the tainted node: {on_first}");
    })
    .await;
    let nodes: Vec<_> = cluster.pods().iter().map(target).collect();
    assert_eq!(nodes.len(), NODES.len() - 1, "{nodes:?}");
    assert!(!nodes.contains(&"n1".to_owned()), "{nodes:?}");
    assert_eq!(cluster.revisions().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_broken_update_stops_and_a_rollback_ends_it() {
    let cluster = Cluster::start(NODES, |_| {}).await;
    cluster.create(&daemon_set("agent").rolling(0, 2));
    rolls_out(&cluster, |_| {}).await;
    cluster.patch(&with_image("broken"));
    for _ in 0..60 {
        run_pods(cluster.sandbox());
        cluster.advance(Duration::from_secs(1)).await;
        one_each_and_unavailable_at_most(&cluster.pods(), NODES.len(), 2);
    }
    let broken = |cluster: &Cluster| cluster.images().iter().filter(|(_, image)| image == "broken").count();
    assert_eq!(broken(&cluster), 2);
    cluster.patch(&with_image("image:1"));
    rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, NODES.len(), 2)).await;
    assert_eq!(broken(&cluster), 0);
}

#[tokio::test(start_paused = true)]
async fn an_update_on_delete_waits_for_deletions() {
    let cluster = Cluster::start(&["n1", "n2"], |_| {}).await;
    cluster.create(&daemon_set("agent").on_delete());
    rolls_out(&cluster, |_| {}).await;
    cluster.patch(&with_image("image:2"));
    cluster.advance(Duration::from_mins(1)).await;
    let images = |cluster: &Cluster| cluster.images().into_iter().map(|(_, image)| image).collect::<Vec<_>>();
    assert_eq!(images(&cluster), ["image:1", "image:1"]);
    assert_eq!(cluster.status().get("updatedNumberScheduled"), None);
    let first = cluster.pod_keys().remove(0);
    cluster.sandbox().delete_now(&kcm_sandbox_apiserver::PODS, &first).expect("the pod must be there");
    cluster
        .eventually("it is replaced", |_| images(&cluster).iter().filter(|image| *image == "image:2").count() == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn min_ready_seconds_pace_an_update() {
    let cluster = Cluster::start(&["n1", "n2"], |_| {}).await;
    cluster.create(&daemon_set("agent").min_ready_seconds(30));
    rolls_out(&cluster, |_| {}).await;
    let started = cluster.sandbox().now();
    cluster.patch(&with_image("image:2"));
    rolls_out(&cluster, |_| {}).await;
    let took = cluster.sandbox().now().duration_since(started).as_secs();
    assert!((60..90).contains(&took), "two pods, one after the other: {took} s");
}

#[tokio::test(start_paused = true)]
async fn a_taint_moves_a_daemon_with_surge_without_a_gap() {
    let cluster = Cluster::start(&["n1", "n2"], |_| {}).await;
    cluster.create(&daemon_set("agent").rolling(1, 0));
    rolls_out(&cluster, |_| {}).await;
    cluster.taint("n1", &json!([{ "key": "gpu", "effect": "NoSchedule" }]));
    cluster.patch(&with_image("image:2"));
    cluster
        .eventually("only the other node is left", |sandbox| {
            run_pods(sandbox);
            cluster.images() == [("n2".to_owned(), "image:2".to_owned())]
        })
        .await;
}
