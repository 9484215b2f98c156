//! Upstream's gates, each on and off.

use std::time::Duration;

use kcm_testing::sandbox::PODS;
use serde_json::json;

use super::apply::{CLAIMS, REVISIONS, SETS, has, images, patch, roll, run_pods, web};
use crate::statefulset::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, as_sent, environment, key};

#[tokio::test(start_paused = true)]
async fn a_revision_that_an_earlier_release_recorded_restarts_pods_only_without_its_gate() {
    for (gate, restarts) in [(true, false), (false, true)] {
        let argument = format!("--feature-gates=StatefulSetSemanticRevisionComparison={gate}");
        let cluster = environment(&[DESCRIPTOR]).arguments(&[&argument]).start().await;
        cluster.watches(&[PODS, SETS, REVISIONS, CLAIMS]).await;
        let sandbox = cluster.sandbox();
        sandbox.create(&SETS, web(1, json!({}))).unwrap();
        has(&cluster, &[("web-0", "image:1")]).await;
        cluster.settle().await;
        let uid = || sandbox.get(&PODS, &key("web-0")).map(|pod| pod["metadata"]["uid"].clone());
        let before = uid();
        // The same template, without a field that has a default today.
        let mut recorded = sandbox.list(&REVISIONS, Some(NAMESPACE)).remove(0);
        let name = recorded["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(
            recorded["data"]["spec"]["template"]["spec"].as_object_mut().unwrap().remove("schedulerName").is_some()
        );
        sandbox.delete_now(&REVISIONS, &key(&name)).unwrap();
        sandbox.create(&REVISIONS, as_sent(recorded)).unwrap();
        patch(&cluster, &json!({ "metadata": { "annotations": { "example.com/note": "reconciled" } } }));
        cluster.advance(Duration::from_mins(1)).await;
        cluster
            .eventually("the pod runs", |sandbox| {
                run_pods(sandbox);
                uid().is_some()
            })
            .await;
        let revisions = sandbox.list(&REVISIONS, Some(NAMESPACE)).len();
        assert_eq!((uid() != before, revisions), (restarts, 1 + usize::from(restarts)), "the gate is {gate}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parallel_rollout_replaces_crashing_pods_first_with_its_gate() {
    let cluster =
        environment(&[DESCRIPTOR]).arguments(&["--feature-gates=MaxUnavailableStatefulSet=true"]).start().await;
    cluster.watches(&[PODS, SETS, REVISIONS, CLAIMS]).await;
    let sandbox = cluster.sandbox();
    let parallel = json!({ "spec": {
        "podManagementPolicy": "Parallel",
        "updateStrategy": { "rollingUpdate": { "partition": 0, "maxUnavailable": 2 } },
    } });
    sandbox.create(&SETS, web(5, parallel)).unwrap();
    let named = |image: &dyn Fn(i32) -> &'static str| -> Vec<(String, String)> {
        (0..5).map(|ordinal| (format!("web-{ordinal}"), image(ordinal).to_owned())).collect()
    };
    let all = |image: &'static str| named(&move |_| image);
    cluster
        .eventually("all pods are ready", |sandbox| {
            run_pods(sandbox);
            images(sandbox) == all("image:1")
                && sandbox.get(&SETS, &key("web")).is_some_and(|set| set["status"]["readyReplicas"] == 5)
        })
        .await;
    for pod in ["web-0", "web-1"] {
        sandbox.set_pod_ready(&key(pod), false, sandbox.now()).unwrap();
    }
    cluster.settle().await;
    roll(&cluster, "image:2");
    // No kubelet makes the new pods ready yet.
    let crashing_first = named(&|ordinal| if ordinal < 2 { "image:2" } else { "image:1" });
    cluster.eventually("the crashing pods are replaced", |sandbox| images(sandbox) == crashing_first).await;
    cluster.consistently("no other pod is", Duration::from_mins(10), |sandbox| images(sandbox) == crashing_first).await;
    cluster
        .eventually("the rollout is complete", |sandbox| {
            let ready = sandbox.list(&PODS, Some(NAMESPACE)).len();
            assert!(ready >= 3, "at most two at a time: {ready}");
            run_pods(sandbox);
            images(sandbox) == all("image:2")
        })
        .await;
}
