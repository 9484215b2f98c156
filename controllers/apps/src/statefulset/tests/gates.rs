//! Upstream's gates, each on and off.

use std::time::Duration;

use kcm_testing::sandbox::PODS;
use serde_json::json;

use super::apply::{CLAIMS, REVISIONS, SETS, has, patch, run_pods, web};
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
