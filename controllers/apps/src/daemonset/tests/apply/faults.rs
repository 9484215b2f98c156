//! Lost responses, late watches, throttling and kills.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::{Fault, NODES, PODS, Sandbox, Status, Verb};
use kcm_testing::kill_after_each_write;
use serde_json::json;

use crate::daemonset::DESCRIPTOR;
use crate::daemonset::tests::cluster::{
    Cluster, DAEMON_SETS, REVISIONS, create_node, create_set, one_each_and_unavailable_at_most, rolls_out, run_pods,
    status, with_image,
};
use crate::daemonset::tests::fixtures::{NAMESPACE, daemon_set, key};
use crate::tests::cluster::environment;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || {
            environment(&[DESCRIPTOR])
                .prepare(|sandbox| ["n1", "n2", "n3"].iter().for_each(|node| create_node(sandbox, node)))
        },
        async |cluster| {
            cluster.watches(&[PODS, NODES, DAEMON_SETS, REVISIONS]).await;
            create_set(cluster.sandbox(), &daemon_set("agent"));
            let invariant = |pods: &[serde_json::Value]| one_each_and_unavailable_at_most(pods, 3, 3);
            rolls_out(cluster, invariant).await;
            cluster.sandbox().patch(&DAEMON_SETS, &key("agent"), &with_image("image:2")).expect("it must be there");
            rolls_out(cluster, |pods| one_each_and_unavailable_at_most(pods, 3, 1)).await;
            assert_eq!(cluster.sandbox().list(&REVISIONS, None).len(), 2);
        },
    )
    .await;
    assert!(writes >= 14, "2 revisions, 6 creations, 3 deletions, and a status after each step: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_creates_no_second_pod_and_no_second_revision() {
    for number in 0..12 {
        let cluster = Cluster::start(&["n1", "n2", "n3"], |_| {}).await;
        let lost = cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        cluster.create(&daemon_set("agent"));
        rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, 3, 3)).await;
        cluster.patch(&with_image("image:2"));
        rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, 3, 1)).await;
        cluster.advance(MINUTE).await;
        assert_eq!((cluster.pods().len(), cluster.revisions().len(), lost.hits()), (3, 2, 1), "{number}");
        assert_eq!(cluster.status().get("collisionCount"), None, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_watches_lead_to_no_second_pod() {
    for late in [PODS, NODES, DAEMON_SETS, REVISIONS] {
        let delayed = late.clone();
        let cluster =
            Cluster::start(&["n1", "n2", "n3"], move |sandbox| sandbox.faults().delay_events(&delayed, MINUTE)).await;
        cluster.create(&daemon_set("agent"));
        rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, 3, 3)).await;
        cluster.patch(&with_image("image:2"));
        rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, 3, 1)).await;
        let creations = cluster.bodies("POST").iter().filter(|body| body["kind"] == "Pod").count();
        assert_eq!((creations, cluster.revisions().len()), (6, 2), "{late}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_pods_and_no_more() {
    let cluster = Cluster::start(&["n1", "n2"], |sandbox| {
        let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(30);
        sandbox.faults().inject(busy.fail(Status::too_many_requests(1)));
    })
    .await;
    cluster.create(&daemon_set("agent"));
    rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, 2, 2)).await;
    assert_eq!(status(cluster.sandbox())["numberAvailable"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_update_does_not_delay_the_availability_of_a_pod() {
    let cluster = Cluster::start(&["n1"], |_| {}).await;
    cluster.create(&daemon_set("agent").with("/spec", "minReadySeconds", json!(3600)));
    cluster
        .eventually("the pod is ready", |sandbox| {
            run_pods(sandbox);
            status(sandbox)["numberReady"] == 1
        })
        .await;
    cluster.settle().await;
    let since = cluster.sandbox().now();

    // After a missing permission, the next attempt is a minute away.
    let refused = Status::forbidden(&DAEMON_SETS, "agent", "User \"u\" cannot update resource \"daemonsets/status\"");
    let refused = Fault::on(Verb::Update).resource(DAEMON_SETS).times(1).fail(refused);
    let refused = cluster.sandbox().faults().inject(refused);
    cluster.patch(&json!({ "spec": { "minReadySeconds": 20 } }));
    cluster.eventually("it is available", |sandbox| status(sandbox)["numberAvailable"] == 1).await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert_eq!((refused.hits(), cluster.take_errors().len()), (1, 1));
    assert!((15..=22).contains(&waited), "after {waited} s");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_cannot_be_decoded_are_kept_and_counted() {
    let environment = environment(&[DESCRIPTOR]).allow_error("Object cannot be decoded");
    let cluster = environment.prepare(|sandbox| ["n1", "n2"].iter().for_each(|node| create_node(sandbox, node)));
    let cluster = cluster.start().await;
    cluster.watches(&[PODS, NODES, DAEMON_SETS, REVISIONS]).await;
    create_set(cluster.sandbox(), &daemon_set("agent"));
    let pods = |sandbox: &Sandbox| {
        let pods = sandbox.list(&PODS, Some(NAMESPACE)).into_iter();
        pods.map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>()
    };
    let desired = |sandbox: &Sandbox| status(sandbox)["desiredNumberScheduled"].clone();
    cluster.eventually("both nodes have a pod", |sandbox| pods(sandbox).len() == 2 && desired(sandbox) == 2).await;
    let waiting = pods(cluster.sandbox());
    let n1 = ObjectKey::cluster_scoped("n1");
    DirectClient::new(cluster.sandbox()).merge(&NODES, &n1, None, &json!({ "spec": { "taints": "none" } })).unwrap();
    cluster.settle().await;
    cluster.sandbox().patch(&DAEMON_SETS, &key("agent"), &json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    let stays = |sandbox: &Sandbox| pods(sandbox) == waiting && desired(sandbox) == 2;
    cluster.consistently("pods and status stay", MINUTE * 2, stays).await;

    cluster.sandbox().patch(&NODES, &n1, &json!({ "spec": { "taints": null } })).unwrap();
    create_node(cluster.sandbox(), "n3");
    cluster.eventually("the third node has a pod", |sandbox| pods(sandbox).len() == 3 && desired(sandbox) == 3).await;
    assert!(waiting.iter().all(|pod| pods(cluster.sandbox()).contains(pod)));
}
