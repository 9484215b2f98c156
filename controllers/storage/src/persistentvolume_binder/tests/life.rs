//! Binding, provisioning and classes on an API server in the process.

use std::time::Duration;

use kcm_testing::sandbox::{PODS, Sandbox};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::{Value, json};

use super::fixtures::{
    CLAIMS, CLASSES, COMPONENT, IDENTITY, VOLUMES, claim_key, create_claim, create_class, create_volume, environment,
    start, state_of_claim, state_of_volume, volume_key,
};
use crate::tests::faults::passing_faults;

const BOUND: &str = "c volume=v phase=Bound capacity=1Gi bbc bc";

fn is_bound(sandbox: &Sandbox) -> bool {
    state_of_claim(sandbox, "c") == BOUND && state_of_volume(sandbox, "v") == "v claim=c uid phase=Bound bbc"
}

/// A claim is bound, and its volume is released when it is deleted.
async fn life(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, VOLUMES, CLASSES]).await;
    create_volume(cluster.sandbox(), "v 1Gi phase=Pending");
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.eventually("they are bound", is_bound).await;
    delete_claim(cluster.sandbox(), "c");
    cluster
        .eventually("the volume is released", |sandbox| {
            state_of_volume(sandbox, "v") == "v claim=c other phase=Released bbc"
        })
        .await;
}

pub(super) fn delete_claim(sandbox: &Sandbox, name: &str) {
    sandbox.patch(&CLAIMS, &claim_key(name), &json!({ "metadata": { "finalizers": null } })).expect("it is there");
    sandbox.delete_now(&CLAIMS, &claim_key(name)).expect("it is there");
}

fn create_pod(sandbox: &Sandbox, name: &str, claim: &str) {
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }]);
    let containers = json!([{ "name": "main", "image": "example/main:1" }]);
    let pod = json!({
        "metadata": { "namespace": "shop", "name": name }, "spec": { "containers": containers, "volumes": volumes },
    });
    sandbox.create(&PODS, pod).expect("the pod must be valid");
}

pub(super) fn events(cluster: &TestCluster, reason: &str) -> usize {
    cluster.events_of(COMPONENT).iter().filter(|event| event.contains(reason)).count()
}

#[tokio::test(start_paused = true)]
async fn pvb_18_a_claim_is_bound_in_four_writes_and_then_nothing_is_written() {
    let cluster = start(environment()).await;
    create_volume(cluster.sandbox(), "v 1Gi");
    cluster.settle().await;
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.eventually("they are bound", is_bound).await;
    cluster.advance(Duration::from_hours(30)).await;
    let writes: Vec<String> = cluster
        .writes_of(IDENTITY)
        .iter()
        .map(|request| format!("{} {}", request.method, request.path))
        .filter(|write| !write.contains("/events"))
        .collect();
    let of_claim = "PUT /api/v1/namespaces/shop/persistentvolumeclaims/c";
    let expected = [
        "PUT /api/v1/persistentvolumes/v".to_owned(),
        "PUT /api/v1/persistentvolumes/v/status".to_owned(),
        of_claim.to_owned(),
        format!("{of_claim}/status"),
    ];
    assert_eq!(writes, expected);
    let volume = cluster.sandbox().get(&VOLUMES, &volume_key("v")).unwrap();
    assert!(volume["spec"]["claimRef"]["resourceVersion"].is_string(), "t_30");
    assert_eq!(cluster.events_of(COMPONENT), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, life).await;
    assert!(writes >= 6, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for resource in [VOLUMES, CLAIMS] {
        for fault in passing_faults() {
            let cluster = environment().start().await;
            cluster.sandbox().faults().inject(fault.resource(resource.clone()));
            life(&cluster).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn t_32_a_claim_that_is_deleted_while_it_is_bound_releases_its_volume() {
    let cluster = start(environment()).await;
    create_volume(cluster.sandbox(), "v 1Gi");
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&CLAIMS);
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.sandbox().faults().release_watches(&CLAIMS);
    cluster.sandbox().faults().hold_watches(&VOLUMES);
    cluster.advance(Duration::from_millis(1)).await;
    delete_claim(cluster.sandbox(), "c");
    cluster.sandbox().faults().release_watches(&VOLUMES);
    cluster.advance(Duration::from_mins(2)).await;
    let state = state_of_volume(cluster.sandbox(), "v");
    assert!(state == "v phase=Available" || state.contains("phase=Released"), "{state}");
}

#[tokio::test(start_paused = true)]
async fn pvb_28_a_volume_is_not_released_because_the_cache_does_not_show_its_claim_yet() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&CLAIMS);
    create_claim(cluster.sandbox(), "c 1Gi");
    create_volume(cluster.sandbox(), "v 1Gi claim=c uid phase=Bound");
    cluster
        .consistently("it stays", Duration::from_mins(5), |sandbox| {
            state_of_volume(sandbox, "v") == "v claim=c uid phase=Bound"
        })
        .await;
    cluster.sandbox().faults().release_watches(&CLAIMS);
    cluster
        .eventually("they are bound", |sandbox| {
            state_of_claim(sandbox, "c") == "c volume=v phase=Bound capacity=1Gi bbc bc"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn pvb_28_a_volume_is_not_released_because_the_cache_shows_an_earlier_claim_of_the_name() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "c 1Gi phase=Pending");
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&CLAIMS);
    delete_claim(cluster.sandbox(), "c");
    create_claim(cluster.sandbox(), "c 1Gi volume=v phase=Bound bc");
    create_volume(cluster.sandbox(), "v 1Gi claim=c uid policy=Delete");
    cluster
        .consistently("it stays", Duration::from_mins(5), |sandbox| {
            let state = state_of_volume(sandbox, "v");
            state == "v claim=c uid phase=Available" || state == "v claim=c uid phase=Bound"
        })
        .await;
    cluster.sandbox().faults().release_watches(&CLAIMS);
    cluster.eventually("it is bound", |sandbox| state_of_volume(sandbox, "v") == "v claim=c uid phase=Bound").await;
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_another_client_has_bound_meanwhile_is_not_taken() {
    let cluster = start(environment()).await;
    create_volume(cluster.sandbox(), "v 1Gi");
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&VOLUMES);
    let reference = json!({ "namespace": "shop", "name": "d", "uid": "0f0e7c58-4d0e-4c5a-9c60-1b9a9b5f4d11" });
    let taken = json!({ "spec": { "claimRef": reference } });
    cluster.sandbox().patch(&VOLUMES, &volume_key("v"), &taken).unwrap();
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(state_of_volume(cluster.sandbox(), "v"), "v claim=d other phase=Available");
    cluster.sandbox().faults().release_watches(&VOLUMES);
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(state_of_volume(cluster.sandbox(), "v"), "v claim=d other phase=Released");
    assert_eq!(state_of_claim(cluster.sandbox(), "c"), "c phase=Pending");
}

#[tokio::test(start_paused = true)]
async fn b_2_many_claims_and_volumes_are_paired_without_a_conflict() {
    let cluster = start(environment()).await;
    for number in 0..60 {
        create_volume(cluster.sandbox(), &format!("v{number} 1Gi phase=Pending"));
        create_claim(cluster.sandbox(), &format!("c{number} 1Gi"));
    }
    cluster
        .eventually("all are bound", |sandbox| {
            (0..60).all(|number| state_of_claim(sandbox, &format!("c{number}")).contains("phase=Bound"))
        })
        .await;
    let claims = cluster.sandbox().list(&CLAIMS, Some("shop"));
    let mut names: Vec<&str> = claims.iter().filter_map(|claim| claim["spec"]["volumeName"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 60, "a volume never has two claims");
    let conflicts = cluster.requests_of(IDENTITY).iter().filter(|request| request.status == Some(409)).count();
    assert_eq!(conflicts, 0);
}

#[tokio::test(start_paused = true)]
async fn b_1_what_ends_a_wait_enqueues_the_claim_without_the_sync_period() {
    let cluster = start(environment().arguments(&["--pvclaimbinder-sync-period=10h"])).await;
    let sandbox = cluster.sandbox();
    for claim in ["free 1Gi", "reserved 1Gi", "named 1Gi volume=vn", "class 1Gi class=later", "retro 1Gi"] {
        create_claim(sandbox, claim);
    }
    cluster.settle().await;
    create_volume(sandbox, "vr 1Gi claim=reserved phase=Pending");
    create_volume(sandbox, "vn 1Gi phase=Pending class=x");
    cluster
        .eventually("the reserved volume is taken", |sandbox| state_of_claim(sandbox, "reserved").contains("volume=vr"))
        .await;
    create_volume(sandbox, "vf 1Gi phase=Pending");
    cluster
        .eventually("a free volume is taken", |sandbox| {
            ["free", "retro"].iter().any(|claim| state_of_claim(sandbox, claim).contains("volume=vf"))
        })
        .await;
    create_class(sandbox, "later", "csi.example.com", "Immediate");
    cluster.eventually("the class is used", |sandbox| provisioner(sandbox, "class") == "csi.example.com").await;
    let default = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
    sandbox.patch(&CLASSES, &volume_key("later"), &json!({ "metadata": { "annotations": default } })).unwrap();
    cluster
        .eventually("the default class is assigned", |sandbox| {
            let class =
                |name: &str| sandbox.get(&CLAIMS, &claim_key(name)).unwrap()["spec"]["storageClassName"].clone();
            class("free") == "later" || class("retro") == "later"
        })
        .await;
    assert!(cluster.metrics().contains("retroactive_storageclass_total 1"), "{}", cluster.metrics());
}

pub(super) fn provisioner(sandbox: &Sandbox, claim: &str) -> Value {
    let claim = sandbox.get(&CLAIMS, &claim_key(claim)).unwrap();
    claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"].clone()
}

#[tokio::test(start_paused = true)]
async fn pvb_11_and_t_5_a_claim_without_a_class_takes_a_volume_before_the_default_class() {
    let environment = environment().prepare(|sandbox| {
        create_claim(sandbox, "c 1Gi");
        create_claim(sandbox, "d 1Gi");
        create_claim(sandbox, "e 5Gi class=");
        create_volume(sandbox, "v 1Gi");
        for (name, created) in [("b", "a"), ("a", "b")] {
            let annotations = json!({ "storageclass.kubernetes.io/is-default-class": "true", "order": created });
            let class =
                json!({ "metadata": { "name": name, "annotations": annotations }, "provisioner": "csi.example.com" });
            sandbox.create(&CLASSES, class).unwrap();
        }
    });
    let cluster = start(environment).await;
    cluster.advance(Duration::from_mins(1)).await;
    let class =
        |name: &str| cluster.sandbox().get(&CLAIMS, &claim_key(name)).unwrap()["spec"]["storageClassName"].clone();
    assert_eq!((class("c"), class("d"), class("e")), (Value::Null, json!("a"), json!("")));
    assert!(state_of_claim(cluster.sandbox(), "c").contains("volume=v"));
}

#[tokio::test(start_paused = true)]
async fn pvb_12_and_b_8_a_claim_that_binds_late_names_the_pods_that_wait_and_at_rest_nothing_is_sent() {
    let environment =
        environment().prepare(|sandbox| create_class(sandbox, "wait", "csi.example.com", "WaitForFirstConsumer"));
    let cluster = start(environment).await;
    create_claim(cluster.sandbox(), "c 1Gi class=wait");
    cluster.settle().await;
    assert_eq!(events(&cluster, "WaitForFirstConsumer"), 1);
    create_pod(cluster.sandbox(), "web", "c");
    cluster.settle().await;
    assert_eq!(events(&cluster, "waiting for pod web to be scheduled"), 1);
    let before = cluster.requests_of(IDENTITY).len();
    cluster.advance(Duration::from_mins(9)).await;
    let waits: Vec<_> = cluster.requests_of(IDENTITY).split_off(before);
    assert!(waits.iter().all(|request| request.method == "GET" && request.query.contains("watch=")), "{waits:?}");
    let node = json!({ "metadata": { "annotations": { "volume.kubernetes.io/selected-node": "n1" } } });
    cluster.sandbox().patch(&CLAIMS, &claim_key("c"), &node).unwrap();
    cluster.eventually("it is provisioned", |sandbox| provisioner(sandbox, "c") == "csi.example.com").await;
    assert_eq!(events(&cluster, "ExternalProvisioning"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_cannot_be_decoded_does_not_make_its_claim_lost() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_volume(cluster.sandbox(), "v 1Gi");
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.eventually("they are bound", is_bound).await;
    cluster.settle().await;
    let broken = json!({ "spec": { "accessModes": 5 } });
    kcm_testing::sandbox::direct::DirectClient::new(cluster.sandbox())
        .merge(&VOLUMES, &volume_key("v"), None, &broken)
        .unwrap();
    cluster.settle().await;
    let touched = json!({ "metadata": { "labels": { "a": "b" } } });
    cluster.sandbox().patch(&CLAIMS, &claim_key("c"), &touched).unwrap();
    cluster
        .consistently("it stays bound", Duration::from_mins(2), |sandbox| state_of_claim(sandbox, "c") == BOUND)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_claim_whose_volume_returns_is_bound_again() {
    let cluster = start(environment()).await;
    create_volume(cluster.sandbox(), "v 1Gi");
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.eventually("they are bound", is_bound).await;
    cluster.sandbox().patch(&VOLUMES, &volume_key("v"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster.sandbox().delete_now(&VOLUMES, &volume_key("v")).unwrap();
    cluster.eventually("it is lost", |sandbox| state_of_claim(sandbox, "c") == "c volume=v phase=Lost bbc bc").await;
    assert_eq!(events(&cluster, "ClaimLost"), 1);
    create_volume(cluster.sandbox(), "v 1Gi phase=Pending");
    cluster.eventually("they are bound again", is_bound).await;
}

#[tokio::test(start_paused = true)]
async fn the_collectors_count_volumes_and_claims() {
    let cluster = start(environment()).await;
    create_volume(cluster.sandbox(), "v 1Gi");
    create_volume(cluster.sandbox(), "w 1Gi class=gold path=/tmp/w");
    create_claim(cluster.sandbox(), "c 1Gi");
    cluster.eventually("they are bound", is_bound).await;
    let metrics = cluster.metrics();
    for line in [
        r#"pv_collector_total_pv_count{plugin_name="N/A",volume_mode="Filesystem"} 1"#,
        r#"pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Filesystem"} 1"#,
        r#"pv_collector_bound_pv_count{storage_class=""} 1"#,
        r#"pv_collector_unbound_pv_count{storage_class="gold"} 1"#,
        r#"pv_collector_bound_pvc_count{namespace="shop",storage_class="",volume_attributes_class=""} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}
