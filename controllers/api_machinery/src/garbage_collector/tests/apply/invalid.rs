//! References across namespaces, and of cluster-scoped objects to namespaced ones.

use std::time::Duration;

use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, EVENTS, NODES};

use super::{create, create_in, environment, key, left, start};

/// Type, reason and message of each event of the controller.
pub(super) fn events(cluster: &TestCluster) -> Vec<String> {
    let mut events = cluster.sandbox().list(&EVENTS, None);
    events.retain(|event| event["source"]["component"] == "garbage-collector-controller");
    let line = |event: &serde_json::Value| {
        format!(
            "{} {} {}",
            event["type"].as_str().unwrap(),
            event["reason"].as_str().unwrap(),
            event["message"].as_str().unwrap()
        )
    };
    events.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_another_namespace_does_not_exist_and_is_reported() {
    let cluster = start(environment()).await;
    let elsewhere = create_in(cluster.sandbox(), &CONFIG_MAPS, "other", "owner", &[]);
    cluster.settle().await;
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&elsewhere, false)]);
    left(&cluster, &[]).await;
    let uid = elsewhere.object["metadata"]["uid"].as_str().unwrap();
    let expected = format!(
        "Warning OwnerRefInvalidNamespace ownerRef [v1/ConfigMap, namespace: shop, name: owner, uid: {uid}] does not \
         exist in namespace \"shop\""
    );
    assert_eq!(events(&cluster), [expected]);
    assert_eq!(cluster.sandbox().list(&CONFIG_MAPS, Some("other")).len(), 1, "the owner itself is left alone");
}

#[tokio::test(start_paused = true)]
async fn a_right_owner_and_its_other_dependents_outlive_a_wrong_reference() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, true)]);
    for number in 0..3 {
        create_in(cluster.sandbox(), &CONFIG_MAPS, "other", &format!("wrong-{number}"), &[owner.reference(true)]);
    }
    cluster.eventually("the wrong ones are gone", |sandbox| sandbox.list(&CONFIG_MAPS, Some("other")).is_empty()).await;
    cluster.advance(Duration::from_mins(5)).await;
    left(&cluster, &["child", "owner"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_object_with_a_namespaced_owner_is_kept_and_reported() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    cluster.settle().await;
    create_in(cluster.sandbox(), &NODES, "", "node", &[owner.reference(false)]);
    cluster.sandbox().delete(&CONFIG_MAPS, &key("owner")).unwrap();
    cluster.consistently("it is kept", Duration::from_mins(10), |sandbox| sandbox.list(&NODES, None).len() == 1).await;
    assert!(events(&cluster)[0].contains("namespace: , name: owner"), "{:?}", events(&cluster));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_owner_may_be_named_from_every_namespace() {
    let cluster = start(environment()).await;
    let node = create_in(cluster.sandbox(), &NODES, "", "node", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "here", &[(&node, true)]);
    create_in(cluster.sandbox(), &CONFIG_MAPS, "other", "there", &[node.reference(true)]);
    cluster.advance(Duration::from_mins(2)).await;
    let count = || cluster.sandbox().list(&CONFIG_MAPS, None).len();
    assert_eq!(count(), 2);
    cluster.sandbox().delete(&NODES, &kcm_framework::api::ObjectKey::cluster_scoped("node")).unwrap();
    cluster.eventually("both are gone", |_| count() == 0).await;
    assert_eq!(events(&cluster), [""; 0]);
}
