//! Lost responses, late watches, throttling and kills.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::{Fault, NODES, PODS, Sandbox, Status, Verb};
use kcm_testing::kill_after_each_write;
use serde_json::json;

use crate::daemonset::DESCRIPTOR;
use crate::daemonset::tests::cluster::{
    Cluster, DAEMON_SETS, REVISIONS, create_node, create_set, is_terminating, one_each_and_unavailable_at_most,
    rolls_out, run_pods, status, target, with_image,
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

#[tokio::test(start_paused = true)]
async fn a_node_whose_pods_are_denied_keeps_no_other_node_waiting() {
    const NODES_OF_TEST: &[&str] = &["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    let cluster = Cluster::start(NODES_OF_TEST, |sandbox| {
        sandbox.admit(|attempt| {
            let denied = |pod: &serde_json::Value| ["n0", "n1", "n2"].contains(&target(pod).as_str());
            match attempt.object {
                Some(pod) if attempt.verb == Verb::Create && *attempt.resource == PODS && denied(pod) => {
                    Err(Status::forbidden(&PODS, "", "denied by policy"))
                }
                _ => Ok(()),
            }
        });
    })
    .await;
    cluster.create(&daemon_set("agent"));
    cluster.eventually("the other nodes have their pods", |_| cluster.pods().len() == 7).await;
    let waited = cluster.sandbox().now().duration_since(crate::tests::cluster::now()).as_secs();
    assert!(waited < 60, "after {waited} s");
    drop(cluster.take_errors());
}

/// Upstream's `TestDaemonSetPodCreateExpectationsError` and its companion: the server takes 10 pods and refuses the rest.
#[tokio::test(start_paused = true)]
async fn a_burst_that_fails_in_the_middle_stops_after_its_batch_and_reports_what_it_made() {
    let cluster = Cluster::start(&[], |sandbox| {
        (0..100).for_each(|number| create_node(sandbox, &format!("n{number:03}")));
        let refused = Status::forbidden(&PODS, "", "exceeded quota");
        sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).skip(10).fail(refused));
    })
    .await;
    cluster.create(&daemon_set("agent"));
    let counts = |sandbox: &Sandbox| {
        let status = status(sandbox);
        ["desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled"]
            .map(|count| status[count].as_i64().unwrap_or(0))
    };
    cluster.eventually("it is reported", |sandbox| counts(sandbox)[0] == 100).await;
    cluster.settle().await;
    let creations = cluster.bodies("POST").iter().filter(|body| body["kind"] == "Pod").count();
    assert_eq!(cluster.pods().len(), 10);
    // Batches of 1, 2, 4 and 8, and retries of one pod each.
    assert!(creations < 30, "{creations}");
    cluster.eventually("the pods are counted", |sandbox| counts(sandbox) == [100, 10, 10]).await;
    drop(cluster.take_errors());
    cluster.sandbox().faults().clear();
    cluster.eventually("the rest follows", |_| cluster.pods().len() == 100).await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_fails_again_and_again_delays_neither_availability_nor_a_replacement() {
    let cluster = Cluster::start(&["n1", "n2", "n3"], |sandbox| {
        sandbox.admit(|attempt| {
            let is_third = attempt.object.is_some_and(|pod| target(pod) == "n3");
            if attempt.verb == Verb::Create && *attempt.resource == PODS && is_third {
                return Err(Status::forbidden(&PODS, "", "exceeded quota"));
            }
            Ok(())
        });
    })
    .await;
    cluster.create(&daemon_set("agent").min_ready_seconds(10));
    cluster.eventually("two nodes have their pods", |_| cluster.pods().len() == 2).await;
    // By now the key fails again only after minutes.
    cluster.advance(10 * MINUTE).await;
    run_pods(cluster.sandbox());
    run_pods(cluster.sandbox());
    let since = cluster.sandbox().now();
    cluster.eventually("both are available", |sandbox| status(sandbox)["numberAvailable"] == 2).await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert!((9..=12).contains(&waited), "after {waited} s");

    // The second failure of a node waits for its back-off of a second.
    let on_first = || {
        let pods = cluster.pods();
        let pod = pods.iter().find(|pod| target(pod) == "n1" && !is_terminating(pod))?;
        Some(key(pod["metadata"]["name"].as_str().unwrap()))
    };
    for _ in 0..2 {
        let failed = on_first().expect("the node has a pod");
        cluster.sandbox().set_pod_phase(&failed, "Failed").unwrap();
        let since = cluster.sandbox().now();
        cluster
            .eventually("the failed pod is replaced", |sandbox| {
                run_pods(sandbox);
                on_first().is_some_and(|pod| pod != failed)
            })
            .await;
        let waited = cluster.sandbox().now().duration_since(since).as_secs();
        assert!(waited <= 3, "after {waited} s");
    }
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn limits_that_cannot_be_read_stop_only_the_update() {
    let cluster = Cluster::start(&["n1", "n2"], |sandbox| {
        sandbox.unregister(&DAEMON_SETS);
        // The API server validates no custom resources.
        sandbox.register(DAEMON_SETS);
    })
    .await;
    cluster.create(&daemon_set("agent").rolling("many", 0));
    cluster.eventually("both nodes have their pods", |_| cluster.pods().len() == 2).await;
    cluster
        .eventually("they are reported", |sandbox| {
            run_pods(sandbox);
            status(sandbox)["numberAvailable"] == 2
        })
        .await;
    cluster.patch(&with_image("image:2"));
    cluster.eventually("the template is reported", |sandbox| status(sandbox)["observedGeneration"] == 2).await;
    cluster.settle().await;
    assert!(cluster.images().iter().all(|(_, image)| image == "image:1"), "no pod is replaced");
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_fails_the_reconcile_and_the_error_of_a_pod_comes_first() {
    let failing = |message: &str| Status::forbidden(&PODS, "", &format!("User \"u\" cannot {message}"));
    for (name, pod_fails, expected) in
        [("status error", false, "update the status"), ("both errors", true, "create the pod")]
    {
        let cluster = Cluster::start(&["n1"], |_| {}).await;
        let of_status = Fault::on(Verb::Update).resource(DAEMON_SETS).times(1).fail(failing("update the status"));
        let of_status = cluster.sandbox().faults().inject(of_status);
        let times = usize::from(pod_fails);
        let of_pod = Fault::on(Verb::Create).resource(PODS).times(times).fail(failing("create the pod"));
        cluster.sandbox().faults().inject(of_pod);
        cluster.create(&daemon_set("agent"));
        rolls_out(&cluster, |pods| one_each_and_unavailable_at_most(pods, 1, 1)).await;
        let errors = cluster.take_errors();
        assert_eq!((errors.len(), of_status.hits()), (1, 1), "{name}: {errors:?}");
        assert!(errors[0].contains(expected), "{name}: {errors:?}");
    }
}
