//! The life of a service: its endpoints from the first pod to the last, and what other clients do to them.

use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use super::{
    BATCH_PERIOD, BATCHES, ENDPOINTS, NAMESPACE, SERVICES, create_endpoints, create_pod, create_service, endpoints,
    environment, has_ready, key, pod_name, ready, set_ready, start, writes,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_endpoints_of_a_service_are_as_upstream_writes_them() {
    let trigger = "endpoints.kubernetes.io/last-change-trigger-time";
    let managed_by = "endpoints.kubernetes.io/managed-by";
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "metadata": { "labels": { "team": "a" } } }));
    has_ready(&cluster, []).await;
    let service = cluster.sandbox().get(&SERVICES, &key("web")).unwrap();
    let empty = endpoints(cluster.sandbox());
    assert_eq!(empty["metadata"]["labels"], json!({ "team": "a", managed_by: "endpoint-controller" }));
    assert_eq!(empty["metadata"]["annotations"], json!({ trigger: service["metadata"]["creationTimestamp"] }));
    assert_eq!(empty["subsets"], Value::Null);

    cluster.advance(10 * SECOND).await;
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    let found = endpoints(cluster.sandbox());
    let pod = cluster.sandbox().get(&PODS, &key(&pod_name(1))).unwrap();
    let ready_since = &pod["status"]["conditions"][0]["lastTransitionTime"];
    assert_eq!(found["metadata"]["annotations"], json!({ trigger: ready_since }));
    let target = json!({ "kind": "Pod", "namespace": NAMESPACE, "name": pod_name(1), "uid": pod["metadata"]["uid"] });
    assert_eq!(
        found["subsets"],
        json!([{
            "addresses": [{ "ip": "10.0.0.1", "nodeName": "node-a", "targetRef": target }],
            "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
        }])
    );
    cluster.settle().await;
    let before = writes(&cluster).len();
    cluster.advance(60 * SECOND).await;
    assert_eq!(writes(&cluster).len(), before, "at rest nothing is written");

    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    cluster.eventually("the endpoints are deleted", |sandbox| ready(sandbox).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn addresses_follow_readiness_deletion_and_labels_of_pods() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=3 {
        create_pod(cluster.sandbox(), number);
    }
    has_ready(&cluster, 1..=3).await;
    set_ready(cluster.sandbox(), 2, false);
    has_ready(&cluster, [1, 3]).await;
    let not_ready = endpoints(cluster.sandbox())["subsets"][0]["notReadyAddresses"][0]["ip"].clone();
    assert_eq!(not_ready, "10.0.0.2");
    let published = json!({ "spec": { "publishNotReadyAddresses": true } });
    cluster.sandbox().patch(&SERVICES, &key("web"), &published).unwrap();
    has_ready(&cluster, 1..=3).await;
    let other = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.sandbox().patch(&PODS, &key(&pod_name(3)), &other).unwrap();
    has_ready(&cluster, 1..=2).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    has_ready(&cluster, [2]).await;
    cluster.sandbox().patch_status(&PODS, &key(&pod_name(2)), &json!({ "status": { "phase": "Succeeded" } })).unwrap();
    has_ready(&cluster, []).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_a_headless_service_are_labelled() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "spec": { "clusterIP": "None", "ports": null } }));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    let found = endpoints(cluster.sandbox());
    assert_eq!(found["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(found["subsets"][0]["ports"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_people_add_stays_and_endpoints_that_are_deleted_are_created_again() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    let note = json!({ "metadata": { "annotations": { "example.com/note": "b" }, "finalizers": ["example.com/f"] } });
    cluster.sandbox().patch(&ENDPOINTS, &key("web"), &note).unwrap();
    create_pod(cluster.sandbox(), 2);
    has_ready(&cluster, 1..=2).await;
    let metadata = endpoints(cluster.sandbox())["metadata"].clone();
    let kept = (&metadata["annotations"]["example.com/note"], &metadata["finalizers"]);
    assert_eq!(kept, (&json!("b"), &json!(["example.com/f"])));

    let finalizers = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&ENDPOINTS, &key("web"), &finalizers).unwrap();
    cluster.sandbox().delete(&ENDPOINTS, &key("web")).unwrap();
    has_ready(&cluster, 1..=2).await;
    assert_ne!(endpoints(cluster.sandbox())["metadata"]["uid"], metadata["uid"]);
}

#[tokio::test(start_paused = true)]
async fn addresses_that_people_write_stay_until_the_next_change() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    // The delayed change of the pod that was not ready is over.
    cluster.advance(2 * SECOND).await;
    cluster.sandbox().patch(&ENDPOINTS, &key("web"), &json!({ "subsets": null })).unwrap();
    cluster.advance(60 * SECOND).await;
    assert_eq!(ready(cluster.sandbox()), Some(vec![]));
    cluster.sandbox().patch(&SERVICES, &key("web"), &json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    has_ready(&cluster, [1]).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_left_behind_are_deleted_and_records_of_leader_election_are_not() {
    let leader = json!({ "annotations": { "control-plane.alpha.kubernetes.io/leader": "{}" } });
    let environment = environment().prepare(move |sandbox| {
        create_endpoints(sandbox, "left-behind", &json!({}));
        create_endpoints(sandbox, "leader", &leader);
    });
    let cluster = start(environment).await;
    let exists = |name: &str| cluster.sandbox().get(&ENDPOINTS, &key(name)).is_some();
    cluster.eventually("they are deleted", |sandbox| sandbox.get(&ENDPOINTS, &key("left-behind")).is_none()).await;
    let renewal = json!({ "metadata": { "annotations": { "control-plane.alpha.kubernetes.io/leader": "{\"a\":1}" } } });
    cluster.sandbox().patch(&ENDPOINTS, &key("leader"), &renewal).unwrap();
    cluster.advance(60 * SECOND).await;
    assert!(exists("leader"));
    assert_eq!(writes(&cluster).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_services_that_select_no_pods_are_left_alone() {
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "example.com", "clusterIP": "" } });
    for change in [json!({ "spec": { "selector": null } }), external] {
        let cluster = start(environment()).await;
        create_endpoints(cluster.sandbox(), "web", &json!({}));
        create_service(cluster.sandbox(), &change);
        create_pod(cluster.sandbox(), 1);
        cluster.advance(60 * SECOND).await;
        assert_eq!(endpoints(cluster.sandbox())["subsets"][0]["addresses"][0]["ip"], "10.9.9.9", "{change}");
        assert!(writes(&cluster).is_empty(), "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_within_the_batch_period_are_one_write() {
    for batches in BATCHES {
        let cluster = start(environment().arguments(&["--endpoint-updates-batch-period=5s"])).await;
        create_service(cluster.sandbox(), &json!({}));
        for number in 1..=3 {
            create_pod(cluster.sandbox(), number);
        }
        has_ready(&cluster, 1..=3).await;
        cluster.advance(3 * BATCH_PERIOD).await;
        batches.run(&cluster, || writes(&cluster).len()).await;
        assert_eq!(ready(cluster.sandbox()).as_deref(), Some(batches.ready), "{}", batches.name);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_large_service_that_follow_each_other_are_one_write() {
    const COUNT: usize = 200;
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=COUNT {
        create_pod(cluster.sandbox(), number);
    }
    has_ready(&cluster, 1..=COUNT).await;
    cluster.advance(SECOND).await;
    let before = writes(&cluster).len();
    set_ready(cluster.sandbox(), 1, false);
    cluster.advance(SECOND / 1000).await;
    assert_eq!(writes(&cluster).len(), before + 1, "the first change after a rest does not wait");
    for number in 2..=4 {
        set_ready(cluster.sandbox(), number, false);
        cluster.advance(SECOND / 1000).await;
        assert_eq!(writes(&cluster).len(), before + 1, "{number}");
    }
    has_ready(&cluster, 5..=COUNT).await;
    assert_eq!(writes(&cluster).len(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_addresses_are_written_and_an_annotation_says_so() {
    let cluster = start(environment().arguments(&["--endpoint-updates-batch-period=5s"])).await;
    let annotation =
        |sandbox: &_| endpoints(sandbox)["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"].clone();
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=1001 {
        create_pod(cluster.sandbox(), number);
    }
    cluster.eventually("they are truncated", |sandbox| annotation(sandbox) == "truncated").await;
    assert_eq!(ready(cluster.sandbox()).unwrap().len(), 1000);
    cluster.settle().await;
    let before = writes(&cluster).len();
    cluster.sandbox().patch(&SERVICES, &key("web"), &json!({ "spec": { "sessionAffinity": "ClientIP" } })).unwrap();
    cluster.advance(60 * SECOND).await;
    assert_eq!(writes(&cluster).len(), before, "nothing that is written differs");
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(7))).unwrap();
    has_ready(&cluster, (1..=1001).filter(|number| *number != 7)).await;
    assert_eq!(annotation(cluster.sandbox()), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_pods_are_not_mirrored() {
    const SLICES: Resource = Resource::namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");
    let both = [crate::endpoints::DESCRIPTOR, crate::endpointslice_mirroring::DESCRIPTOR];
    let cluster = start(TestEnvironment::new(both).namespace(NAMESPACE)).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    cluster.advance(60 * SECOND).await;
    assert!(cluster.sandbox().list(&SLICES, Some(NAMESPACE)).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_new_change_of_pod_or_service_clears_the_trigger_time() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    let trigger = |sandbox: &_| {
        endpoints(sandbox)["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"].clone()
    };
    assert!(trigger(cluster.sandbox()).is_string());
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    cluster.sandbox().patch(&SERVICES, &key("web"), &labels).unwrap();
    let is_labelled = |sandbox: &_| endpoints(sandbox)["metadata"]["labels"]["team"] == "a";
    cluster.eventually("the endpoints are labelled", is_labelled).await;
    assert_eq!(trigger(cluster.sandbox()), Value::Null);
    assert_eq!(ready(cluster.sandbox()), Some(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_alias_any_more_gets_endpoints() {
    let cluster = start(environment()).await;
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "example.com" } });
    create_service(cluster.sandbox(), &external);
    create_pod(cluster.sandbox(), 1);
    cluster.consistently("there are no endpoints", 10 * SECOND, |sandbox| ready(sandbox).is_none()).await;
    let change = json!({ "spec": { "type": "ClusterIP", "externalName": null } });
    cluster.sandbox().patch(&SERVICES, &key("web"), &change).unwrap();
    has_ready(&cluster, [1]).await;
}
