//! Pods come and go with nodes.

use std::time::Duration;

use kcm_sandbox_apiserver::{Fault, NODES, PODS, Status, Verb};
use serde_json::{Value, json};

use crate::daemonset::tests::cluster::{Cluster, create_node, create_set, rolls_out, run_pods, status, target};
use crate::daemonset::tests::fixtures::{NAMESPACE, daemon_set, key};
use crate::tests::fixtures::{create_pod, pod};

#[tokio::test(start_paused = true)]
async fn every_node_gets_a_pod_that_is_bound_to_it() {
    let cluster = Cluster::start(&["n1", "n2"], |_| {}).await;
    let owner = cluster.create(&daemon_set("agent"));
    cluster.eventually("the pods are reported", |sandbox| status(sandbox)["currentNumberScheduled"] == 2).await;
    let revision = &cluster.revisions()[&1];
    let hash = &revision["metadata"]["labels"]["controller-revision-hash"];

    let posts = cluster.bodies("POST");
    let sent: Vec<&Value> = posts.iter().filter(|body| body["kind"] == "Pod").collect();
    assert_eq!(sent.iter().map(|pod| target(pod)).collect::<Vec<_>>(), ["n1", "n2"]);
    for pod in sent {
        let name = &pod["metadata"]["name"];
        assert_eq!(
            pod["metadata"],
            json!({
                "name": name,
                "generateName": "agent-",
                "namespace": NAMESPACE,
                "labels": { "app": "agent", "controller-revision-hash": hash, "pod-template-generation": "1" },
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": owner["metadata"]["uid"],
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            })
        );
        assert_eq!(pod["spec"]["tolerations"].as_array().map(Vec::len), Some(6));
        let message = format!("Created pod: {}", name.as_str().expect("pods have names"));
        assert!(cluster.events().contains(&("Normal".to_owned(), "SuccessfulCreate".to_owned(), message)));
    }
    rolls_out(&cluster, |_| {}).await;
    assert_eq!(
        cluster.status(),
        json!({
            "currentNumberScheduled": 2,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 2,
            "numberReady": 2,
            "updatedNumberScheduled": 2,
            "numberAvailable": 2,
            "observedGeneration": 1,
        })
    );
    cluster.sandbox().clear_requests();
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(cluster.requests("P").len(), 0, "at rest nothing is written");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_come_change_and_go_are_followed() {
    let cluster = Cluster::start(&["n1"], |_| {}).await;
    cluster.create(&daemon_set("agent"));
    rolls_out(&cluster, |_| {}).await;

    create_node(cluster.sandbox(), "n2");
    cluster.eventually("the new node is counted", |sandbox| status(sandbox)["desiredNumberScheduled"] == 2).await;
    rolls_out(&cluster, |_| {}).await;

    cluster.taint("n1", &json!([{ "key": "gpu", "effect": "NoExecute" }]));
    cluster.eventually("its pod goes", |sandbox| status(sandbox)["desiredNumberScheduled"] == 1).await;
    rolls_out(&cluster, |_| {}).await;
    assert_eq!(cluster.images(), [("n2".to_owned(), "image:1".to_owned())]);

    cluster.taint("n1", &Value::Null);
    cluster.eventually("its pod returns", |sandbox| status(sandbox)["desiredNumberScheduled"] == 2).await;
    rolls_out(&cluster, |_| {}).await;

    cluster
        .sandbox()
        .delete(&NODES, &kcm_framework::api::ObjectKey::cluster_scoped("n2"))
        .expect("the node must be there");
    cluster.eventually("the node is not counted", |sandbox| status(sandbox)["desiredNumberScheduled"] == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_concerns_no_daemon_set_reconciles_none() {
    let cluster = Cluster::start(&["n1"], |_| {}).await;
    cluster.create(&daemon_set("agent").pod_spec("nodeSelector", json!({ "disk": "ssd" })));
    cluster.eventually("it is reported", |sandbox| status(sandbox)["observedGeneration"] == 1).await;
    cluster.settle().await;
    let reconciles = || {
        let page = cluster.metrics();
        let line = page.lines().find(|line| line.starts_with("workqueue_adds_total{name=\"daemonset\"}"));
        line.map(str::to_owned).expect("the queue has a metric")
    };
    let before = reconciles();
    let node = kcm_framework::api::ObjectKey::cluster_scoped("n1");
    let label = |disk: &str| json!({ "metadata": { "labels": { "disk": disk } } });
    cluster.sandbox().patch(&NODES, &node, &label("hdd")).expect("the node must be there");
    cluster.settle().await;
    assert_eq!(reconciles(), before);
    cluster.sandbox().patch(&NODES, &node, &label("ssd")).expect("the node must be there");
    cluster.eventually("it gets a pod", |_| cluster.pods().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_with_growing_delays_and_succeeded_ones_at_once() {
    let cluster = Cluster::start(&["n1"], |_| {}).await;
    cluster.create(&daemon_set("agent"));
    rolls_out(&cluster, |_| {}).await;
    let finish = |phase: &str| {
        let pod = cluster.pod_keys().remove(0);
        cluster.sandbox().set_pod_phase(&pod, phase).expect("the pod must be there");
        pod
    };
    for delay in [0, 1, 2, 4] {
        let failed = finish("Failed");
        if delay > 0 {
            cluster.advance(Duration::from_millis(1000 * delay - 900)).await;
            assert_eq!(cluster.pod_keys(), std::slice::from_ref(&failed), "{delay} s");
        }
        cluster
            .eventually("it is replaced", |sandbox| {
                run_pods(sandbox);
                let keys = cluster.pod_keys();
                keys.len() == 1 && keys[0] != failed
            })
            .await;
    }
    rolls_out(&cluster, |_| {}).await;
    let succeeded = finish("Succeeded");
    cluster
        .eventually("it is replaced", |sandbox| {
            run_pods(sandbox);
            let keys = cluster.pod_keys();
            keys.len() == 1 && keys[0] != succeeded
        })
        .await;
    let events = cluster.events();
    let count = |reason: &str| events.iter().filter(|(_, it, _)| it == reason).count();
    assert_eq!(count("SucceededDaemonPod"), 1, "{events:?}");
    assert!(count("FailedDaemonPod") >= 1, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_created_is_reported_and_the_status_is_written() {
    let cluster = Cluster::start(&["n1"], |sandbox| {
        let refused = Status::forbidden(&PODS, "agent", "quota");
        sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).times(1).fail(refused));
    })
    .await;
    cluster.create(&daemon_set("agent"));
    cluster.eventually("the status is written", |sandbox| status(sandbox)["desiredNumberScheduled"] == 1).await;
    assert!(cluster.events().iter().any(|(_, reason, _)| reason == "FailedCreate"), "{:?}", cluster.events());
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn orphans_are_adopted_and_pods_that_are_not_selected_released() {
    let cluster = Cluster::start(&["n1"], |sandbox| {
        create_pod(sandbox, &pod("orphan").labels(json!({ "app": "agent" })).node("n1").orphan());
    })
    .await;
    let set = cluster.create(&daemon_set("agent"));
    let uid = &set["metadata"]["uid"];
    cluster
        .eventually("it is adopted", |_| {
            cluster.pods().iter().any(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *uid)
        })
        .await;
    // Its template is another: it is replaced.
    rolls_out(&cluster, |_| {}).await;
    let pod = cluster.pod_keys().remove(0);
    let relabel = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.sandbox().patch(&PODS, &pod, &relabel).expect("the pod must be there");
    cluster.eventually("there is another", |_| cluster.pods().len() == 2).await;
    let released = cluster.sandbox().get(&PODS, &pod).expect("the pod must be there");
    assert_eq!(released["metadata"].get("ownerReferences"), None);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_being_deleted_is_left_alone() {
    let cluster = Cluster::start(&["n1"], |sandbox| {
        create_set(sandbox, &daemon_set("agent").with("/metadata", "finalizers", json!(["example.com/hold"])));
        sandbox.delete(&crate::daemonset::tests::cluster::DAEMON_SETS, &key("agent")).expect("it must be there");
    })
    .await;
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(
        (cluster.pods().len(), cluster.revisions().len(), cluster.status()["observedGeneration"].as_i64()),
        (0, 0, None)
    );
}
