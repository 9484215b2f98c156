//! Kills, lost responses, late watches, foreign changes of finalizers, and a busy server: each pod is counted once.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::{Fault, InjectedFault, NODES, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::{Value, json};

use super::kubelet::{Cluster, JOBS, Kubelet, finalizers, finish, is_finished, new_job, status};
use crate::job::DESCRIPTOR;
use crate::pod_garbage_collector;
use crate::tests::cluster::{NAMESPACE, environment, key};

const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);

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
async fn watches_that_are_minutes_behind_count_no_pod_twice() {
    for late in [PODS, JOBS] {
        let cluster = Cluster::start(|_| {}).await;
        cluster.sandbox().faults().delay_events(&late, 2 * MINUTE);
        cluster.create(three());
        let kubelet = Kubelet::failing_first(1);
        kubelet.run(&cluster, "the job is complete", is_finished).await;
        cluster.advance(10 * MINUTE).await;
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
    let kubelet = Kubelet::succeeding().after(0, 2);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    assert_eq!((&status(cluster.sandbox())["succeeded"], &status(cluster.sandbox())["failed"]), (&json!(2), &json!(2)));
}

/// Keeps the status of the job, or the finalizers of its pods, from being written until it is removed.
fn hold(cluster: &TestCluster, verb: Verb) -> InjectedFault {
    let refused = Status::conflict(&JOBS, "sum", "the test holds it");
    let is_held = move |target: &kcm_testing::sandbox::Target| {
        target.verb == verb && (target.resource == JOBS || target.resource == PODS && target.subresource.is_none())
    };
    cluster.sandbox().faults().inject(Fault::on_any().when(is_held).fail(refused))
}

/// The names of the pods, in order of creation.
fn pod_names(sandbox: &Sandbox) -> Vec<String> {
    let pods = sandbox.list(&PODS, Some(NAMESPACE));
    pods.iter().map(|pod| pod["metadata"]["name"].as_str().expect("pods have names").to_owned()).collect()
}

fn remove_finalizers(sandbox: &Sandbox, pod: &str) {
    let patch = json!({ "metadata": { "finalizers": null } });
    sandbox.patch(&PODS, &key(pod), &patch).expect("the pod must be there");
}

#[tokio::test(start_paused = true)]
async fn pods_that_their_node_takes_along_before_they_are_counted_are_counted_once() {
    for mut job in [new_job(3, 2), indexed()] {
        job["spec"]["parallelism"] = json!(2);
        let writes = kill_after_each_write(
            || environment(&[DESCRIPTOR, pod_garbage_collector::DESCRIPTOR]),
            async |cluster| {
                cluster.watches(&[PODS, JOBS, NODES]).await;
                let sandbox = cluster.sandbox();
                let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "gone" } });
                sandbox.create(&NODES, node).unwrap();
                sandbox.create(&JOBS, job.clone()).unwrap();
                cluster.eventually("two pods are there", |sandbox| pod_names(sandbox).len() == 2).await;
                cluster.settle().await;
                let held = hold(cluster, Verb::Update);
                let pods = pod_names(sandbox);
                for pod in &pods {
                    sandbox.bind_pod(&key(pod), "gone").unwrap();
                }
                finish(sandbox, &pods[0], true);
                sandbox.set_pod_phase(&key(&pods[1]), "Running").unwrap();
                sandbox.delete(&NODES, &ObjectKey::cluster_scoped("gone")).unwrap();
                let are_terminating = |sandbox: &Sandbox| {
                    let is_terminating = |pod: &String| {
                        let pod = sandbox.get(&PODS, &key(pod)).expect("the finalizer keeps it");
                        pod["metadata"]["deletionTimestamp"].is_string()
                    };
                    pods.iter().all(is_terminating)
                };
                cluster.advance(2 * MINUTE).await;
                cluster.eventually("the pod garbage collector has deleted both", are_terminating).await;
                let counted = |field: &str| status(sandbox)[field].as_i64().unwrap_or(0);
                assert_eq!((counted("succeeded"), counted("failed")), (0, 0), "neither is counted");
                held.remove();
                let kubelet = Kubelet::succeeding().after(1, 1);
                kubelet.run(cluster, "the job is complete", is_finished).await;
                kubelet.assert_all_counted(sandbox);
                assert_eq!(kubelet.outcomes(), (3, 1));
                cluster.settle().await;
            },
        )
        .await;
        assert!(writes >= 14, "4 creations, 4 finalizers, 2 deletions with their statuses, and statuses: {writes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_somebody_removes_makes_no_pod_count_twice() {
    for job in [new_job(1, 1), indexed()] {
        let wanted = job["spec"]["completions"].clone();
        for (moment, held, is_listed) in [
            ("before the uid of the pod is in the status", Verb::Update, false),
            ("before it is a count", Verb::Patch, true),
        ] {
            let cluster = Cluster::start(|_| {}).await;
            cluster.create(job.clone());
            cluster.eventually("it runs", |sandbox| status(sandbox)["active"] == wanted).await;
            let held = hold(&cluster, held);
            let pod = pod_names(cluster.sandbox()).remove(0);
            finish(cluster.sandbox(), &pod, true);
            let counted = |sandbox: &Sandbox| {
                let status = status(sandbox);
                let listed = [&status["uncountedTerminatedPods"]["succeeded"][0], &status["completedIndexes"]];
                listed.iter().any(|listed| listed.as_str().is_some_and(|listed| !listed.is_empty()))
            };
            if is_listed {
                cluster.eventually("the status has the pod", counted).await;
            } else {
                cluster.advance(MINUTE).await;
                assert!(!counted(cluster.sandbox()));
            }
            remove_finalizers(cluster.sandbox(), &pod);
            held.remove();
            let kubelet = Kubelet::succeeding().after(1, 0);
            kubelet.run(&cluster, "the job is complete", is_finished).await;
            cluster.settle().await;
            let status = status(cluster.sandbox());
            assert_eq!(status["succeeded"], wanted, "{moment}: {status}");
            // A pod without the finalizer that the status does not have may have been counted before: it is replaced.
            let more = i64::from(!is_listed);
            let ran = i64::try_from(kubelet.outcomes().0).unwrap();
            assert_eq!(Some(ran), wanted.as_i64().map(|wanted| wanted + more), "{moment}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_does_not_delay_the_deadline() {
    let orphan = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": "orphan", "labels": { "app": "sum" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] },
    });
    for (refused, has_orphan) in
        [(Fault::on(Verb::Update).resource(JOBS), false), (Fault::on(Verb::Patch).resource(PODS), true)]
    {
        let cluster = Cluster::start(|_| {}).await;
        let mut job = new_job(1, 1);
        job["spec"]["activeDeadlineSeconds"] = json!(90);
        job["spec"]["manualSelector"] = json!(true);
        job["spec"]["selector"] = json!({ "matchLabels": { "app": "sum" } });
        cluster.create(job);
        let started = cluster.sandbox().now();
        cluster.eventually("it runs", |sandbox| status(sandbox)["active"] == 1).await;
        cluster.advance(MINUTE).await;
        // A missing permission is retried after a minute, which is half a minute after the deadline.
        let status = Status::forbidden(&JOBS, "sum", "User \"u\" cannot write");
        let refused = cluster.sandbox().faults().inject(refused.fail(status));
        if has_orphan {
            cluster.sandbox().create(&PODS, orphan.clone()).expect("the pod must be valid");
        } else {
            let pod = pod_names(cluster.sandbox()).remove(0);
            cluster.sandbox().set_pod_ready(&key(&pod), true, cluster.sandbox().now()).expect("the pod must be there");
        }
        // The next manager learns the deadline in the reconcile whose write fails.
        cluster.kill();
        cluster.advance(10 * SECOND).await;
        assert!(refused.hits() > 0 && !is_finished(cluster.sandbox()));
        refused.remove();
        cluster.eventually("it has failed", is_finished).await;
        let took = cluster.sandbox().now().duration_since(started).as_secs();
        assert!((89..95).contains(&took), "after {took} s");
        drop(cluster.take_errors());
    }
}

#[tokio::test(start_paused = true)]
async fn pods_keep_the_finalizer_while_the_status_cannot_be_written() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(2, 2));
    cluster.eventually("two pods run", |sandbox| status(sandbox)["active"] == 2).await;
    let refused = Status::new(500, "InternalError", "it is broken");
    let refused = cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(JOBS).fail(refused));
    for pod in pod_names(cluster.sandbox()) {
        finish(cluster.sandbox(), &pod, true);
    }
    cluster.advance(MINUTE).await;
    assert!(refused.hits() > 0);
    assert_eq!((finalizers(cluster.sandbox()), cluster.requests("PATCH").len()), (2, 0));
    refused.remove();
    let kubelet = Kubelet::succeeding().after(2, 0);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    kubelet.assert_all_counted(cluster.sandbox());
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_cannot_be_removed_delays_the_count_of_its_own_pod_alone() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(2, 2));
    cluster.eventually("two pods run", |sandbox| status(sandbox)["active"] == 2).await;
    let pods = pod_names(cluster.sandbox());
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    let refused = Fault::on(Verb::Patch).resource(PODS).name(&pods[0]).fail(refused);
    let refused = cluster.sandbox().faults().inject(refused);
    for pod in &pods {
        finish(cluster.sandbox(), pod, true);
    }
    cluster.advance(5 * SECOND).await;
    let status = status(cluster.sandbox());
    assert_eq!(status["succeeded"], 1, "{status}");
    assert_eq!(status["uncountedTerminatedPods"]["succeeded"].as_array().map(Vec::len), Some(1), "{status}");
    assert!(!is_finished(cluster.sandbox()));
    refused.remove();
    let kubelet = Kubelet::succeeding().after(2, 0);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    kubelet.assert_all_counted(cluster.sandbox());
    drop(cluster.take_errors());
}
