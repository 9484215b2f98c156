//! Kills, lost responses, late watches, foreign changes of finalizers, and a busy server: each pod is counted once.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use serde_json::{Value, json};

use super::kubelet::{Cluster, JOBS, Kubelet, is_finished, new_job, status};
use crate::cluster::{NAMESPACE, environment, key};
use crate::job::DESCRIPTOR;

const MINUTE: Duration = Duration::from_mins(1);

/// Three completions, two at a time, and a limit that is not reached.
fn three() -> Value {
    new_job(3, 2)
}

fn indexed() -> Value {
    let mut job = new_job(3, 3);
    job["spec"]["completionMode"] = json!("Indexed");
    job["spec"]["backoffLimitPerIndex"] = json!(2);
    job
}

#[tokio::test(start_paused = true)]
async fn each_pod_is_counted_once_whatever_write_it_is_killed_after() {
    for (job, failures) in [(three(), 1), (indexed(), 2)] {
        let writes = kill_after_each_write(
            || environment(&[DESCRIPTOR]),
            async |cluster| {
                cluster.watches(&[PODS, JOBS]).await;
                cluster.sandbox().create(&JOBS, job.clone()).unwrap();
                let kubelet = Kubelet::failing_first(failures);
                kubelet.run(cluster, "the job is complete", is_finished).await;
                kubelet.assert_all_counted(cluster.sandbox());
                // A later start has nothing to do.
                cluster.settle().await;
                kubelet.assert_all_counted(cluster.sandbox());
            },
        )
        .await;
        assert!(writes >= 12, "4 creations, 4 finalizers, and statuses: {writes}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_pod_is_counted_once_whatever_response_is_lost() {
    let mut number = 0;
    loop {
        let cluster = Cluster::start(|_| {}).await;
        let lost = cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        cluster.create(three());
        let kubelet = Kubelet::failing_first(1);
        kubelet.run(&cluster, "the job is complete", is_finished).await;
        cluster.settle().await;
        kubelet.assert_all_counted(cluster.sandbox());
        assert_eq!(kubelet.outcomes(), (3, 1), "response {number}");
        if lost.hits() == 0 {
            break;
        }
        number += 1;
    }
    assert!(number >= 12, "{number}");
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_a_minute_behind_count_no_pod_twice() {
    for late in [PODS, JOBS] {
        let cluster = Cluster::start(|_| {}).await;
        cluster.sandbox().faults().delay_events(&late, MINUTE);
        cluster.create(three());
        let kubelet = Kubelet::failing_first(1);
        kubelet.run(&cluster, "the job is complete", is_finished).await;
        cluster.advance(5 * MINUTE).await;
        kubelet.assert_all_counted(cluster.sandbox());
        assert_eq!(kubelet.outcomes(), (3, 1), "no surplus pod was created");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_job_and_no_more() {
    let cluster = Cluster::start(|sandbox| {
        let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(30);
        sandbox.faults().inject(busy.fail(Status::too_many_requests(1)));
    })
    .await;
    cluster.create(three());
    let kubelet = Kubelet::failing_first(1);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    kubelet.assert_all_counted(cluster.sandbox());
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_finalizer_somebody_removes_is_replaced_and_holds_up_nothing() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(1, 1));
    cluster.eventually("a pod runs", |sandbox| status(sandbox)["active"] == 1).await;
    let name = cluster.pods()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let patch = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&PODS, &key(&name), &patch).unwrap();
    cluster.sandbox().set_pod_phase(&key(&name), "Failed").unwrap();
    let kubelet = Kubelet::succeeding();
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    assert_eq!((&status(cluster.sandbox())["succeeded"], kubelet.outcomes()), (&json!(1), (1, 0)));
}

#[tokio::test(start_paused = true)]
async fn pods_that_vanish_with_their_node_are_counted_before_they_are_gone() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(2, 2));
    cluster.eventually("two pods run", |sandbox| status(sandbox)["active"] == 2).await;
    for name in cluster.pod_keys() {
        // The finalizer keeps them until they are counted.
        cluster.sandbox().delete_now(&PODS, &name).unwrap();
    }
    let count = |sandbox: &Sandbox| sandbox.list(&PODS, Some(NAMESPACE)).len();
    cluster
        .eventually("they are counted and gone", |sandbox| status(sandbox)["failed"] == 2 && count(sandbox) == 0)
        .await;
    let kubelet = Kubelet::succeeding().after_failures(2);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    assert_eq!((&status(cluster.sandbox())["succeeded"], &status(cluster.sandbox())["failed"]), (&json!(2), &json!(2)));
}
