//! Restarts, foreign changes, and nodes that are lost.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, NODES, PODS, Sandbox, Verb};
use serde_json::json;

use super::fixtures::{
    ATTACHMENTS, IDENTITY, attacher, attachments, create_bound, create_node, create_pod, delete_pod, environment,
    is_attached, key, patch_node, reported, set_in_use, set_ready, start, unique_name, until_attached, until_detached,
    writes,
};
use crate::persistentvolume_attach_detach::names;

const RWO: &str = "ReadWriteOnce";

/// Creates a volume that is attached to node `a`, reported and in use, with its pod.
fn create_attached(sandbox: &Sandbox, volumes: &[String]) {
    let entry = |name: &String| json!({ "name": unique_name(name), "devicePath": "" });
    for name in volumes {
        create_bound(sandbox, name, RWO);
        create_pod(sandbox, &format!("pod-{name}"), "a", &[name]);
        let id = names::attachment(super::fixtures::DRIVER, &format!("handle-{name}"), "a");
        let spec =
            json!({ "attacher": super::fixtures::DRIVER, "nodeName": "a", "source": { "persistentVolumeName": name } });
        sandbox.create(&ATTACHMENTS, json!({ "metadata": { "name": id }, "spec": spec })).expect("it must be valid");
    }
    attacher(sandbox);
    let names: Vec<String> = volumes.iter().map(|name| unique_name(name)).collect();
    let attached: Vec<_> = volumes.iter().map(entry).collect();
    patch_node(sandbox, "a", &json!({ "volumesAttached": attached, "volumesInUse": names }));
}

/// Returns the name of the only attachment.
fn only(sandbox: &Sandbox) -> ObjectKey {
    key(sandbox.list(&ATTACHMENTS, None)[0]["metadata"]["name"].as_str().expect("it has a name"))
}

#[tokio::test(start_paused = true)]
async fn b_15_a_restart_with_many_attachments_sends_lists_and_nothing_else() {
    let volumes: Vec<String> = (0..300).map(|number| format!("v{number}")).collect();
    let cluster = start(environment().prepare(move |sandbox| create_attached(sandbox, &volumes))).await;
    cluster.advance(Duration::from_mins(30)).await;
    assert!(cluster.requests_of(IDENTITY).is_empty(), "{:?}", cluster.requests_of(IDENTITY));
    assert_eq!(cluster.events_of(IDENTITY), [""; 0]);
    cluster.kill();
    cluster.advance(Duration::from_mins(30)).await;
    assert!(cluster.requests_of(IDENTITY).is_empty(), "after a kill");
    let metrics = cluster.metrics();
    for line in [
        r#"attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:csi.example.com",state="desired_state_of_world"} 300"#,
        r#"attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:csi.example.com",state="actual_state_of_world"} 300"#,
        r#"storage_count_attachable_volumes_in_use{node="a",volume_plugin="kubernetes.io/csi:csi.example.com"} 300"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn b_11_many_volumes_of_a_node_share_its_patches_and_its_live_read() {
    let volumes: Vec<String> = (0..20).map(|number| format!("v{number}")).collect();
    let cluster = start(environment().prepare(move |sandbox| create_attached(sandbox, &volumes))).await;
    for number in 0..20 {
        delete_pod(cluster.sandbox(), &format!("pod-v{number}"));
    }
    cluster.settle().await;
    set_in_use(cluster.sandbox(), "a", &[]);
    until_detached(&cluster).await;
    let requests = cluster.requests_of(IDENTITY);
    let number = |method: &str| requests.iter().filter(|request| request.method == method).count();
    assert_eq!((number("PATCH"), number("DELETE")), (1, 20));
    assert_eq!(number("GET"), 1, "one live read of the node");
}

#[tokio::test(start_paused = true)]
async fn t_19_a_volume_that_nobody_needs_at_a_start_is_detached_at_once() {
    let cluster = start(environment().prepare(|sandbox| {
        create_attached(sandbox, &["data".to_owned()]);
        delete_pod(sandbox, "pod-data");
        set_in_use(sandbox, "a", &[]);
    }))
    .await;
    until_detached(&cluster).await;
    assert!(cluster.elapsed() < Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn ad_20_an_attachment_that_somebody_deletes_is_created_again() {
    let cluster = start(environment().prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    let name = only(cluster.sandbox());
    cluster.sandbox().patch(&ATTACHMENTS, &name, &json!({ "metadata": { "finalizers": null } })).unwrap();
    cluster.sandbox().delete_now(&ATTACHMENTS, &name).unwrap();
    cluster.eventually("it is created again", |sandbox| !attachments(sandbox).is_empty()).await;
    cluster.settle().await;
    assert!(reported(cluster.sandbox(), "a").is_empty(), "the kubelet must not mount it");
    until_attached(&cluster, "a", "data").await;
}

#[tokio::test(start_paused = true)]
async fn ad_20_a_volume_that_the_driver_has_lost_is_not_reported_unless_verification_is_off() {
    for (argument, is_reported) in [("false", false), ("true", true)] {
        let argument = format!("--disable-attach-detach-reconcile-sync={argument}");
        let environment = environment().arguments(&[&argument]);
        let cluster = start(environment.prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
        let status = json!({ "status": { "attached": false } });
        cluster.sandbox().patch_status(&ATTACHMENTS, &only(cluster.sandbox()), &status).unwrap();
        cluster.settle().await;
        assert_eq!(!reported(cluster.sandbox(), "a").is_empty(), is_reported, "{argument}");
    }
}

#[tokio::test(start_paused = true)]
async fn ad_23_b_13_a_volume_that_is_in_use_after_all_is_reported_again() {
    let cluster = start(environment().prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    set_in_use(cluster.sandbox(), "a", &[]);
    cluster.settle().await;
    cluster.sandbox().faults().delay_events(&NODES, Duration::from_secs(5));
    delete_pod(cluster.sandbox(), "pod-data");
    cluster.eventually("it is withdrawn", |sandbox| reported(sandbox, "a").is_empty()).await;
    set_in_use(cluster.sandbox(), "a", &["data"]);
    cluster.eventually("it is reported again", |sandbox| !reported(sandbox, "a").is_empty()).await;
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"]);
    set_in_use(cluster.sandbox(), "a", &[]);
    until_detached(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn b_15_a_node_that_cannot_be_read_detaches_nothing() {
    let cluster = start(environment().prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    let broken = kcm_testing::sandbox::Status::new(500, "InternalError", "no");
    let fault = Fault::on(Verb::Get).resource(NODES);
    let fault = cluster.sandbox().faults().inject(fault.times(1000).fail(broken));
    delete_pod(cluster.sandbox(), "pod-data");
    set_in_use(cluster.sandbox(), "a", &[]);
    cluster.advance(Duration::from_mins(5)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"]);
    fault.remove();
    until_detached(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn ad_17_a_node_that_is_not_ready_loses_its_volumes_after_six_minutes() {
    let cluster = start(environment().prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    set_ready(cluster.sandbox(), "a", false);
    delete_pod(cluster.sandbox(), "pod-data");
    create_pod(cluster.sandbox(), "new", "b", &["data"]);
    let held = |sandbox: &Sandbox| attachments(sandbox) == ["a data attached"];
    cluster.consistently("a holds it", Duration::from_secs(355), held).await;
    cluster
        .eventually("it is on b", |sandbox| {
            attacher(sandbox);
            is_attached(sandbox, "b", "data")
        })
        .await;
    assert!(cluster.elapsed() < Duration::from_secs(370));
    let metric = r#"attach_detach_controller_attachdetach_controller_forced_detaches_total{reason="timeout"} 1"#;
    assert!(cluster.metrics().contains(metric), "{}", cluster.metrics());
}

#[tokio::test(start_paused = true)]
async fn ad_17_time_forces_nothing_if_the_setting_says_so_and_the_taint_does() {
    let environment = environment().arguments(&["--disable-force-detach-on-timeout=true"]);
    let cluster = start(environment.prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    set_ready(cluster.sandbox(), "a", false);
    delete_pod(cluster.sandbox(), "pod-data");
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"]);
    let taints =
        json!({ "spec": { "taints": [{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }] } });
    cluster.sandbox().patch(&NODES, &key("a"), &taints).unwrap();
    until_detached(&cluster).await;
    let metric = r#"forced_detaches_total{reason="out-of-service"} 1"#;
    assert!(cluster.metrics().contains(metric), "{}", cluster.metrics());
    assert!(!cluster.requests_of(IDENTITY).iter().any(|request| request.method == "GET"), "it is not verified");
}

#[tokio::test(start_paused = true)]
async fn a_restart_after_a_detach_by_force_does_not_block_the_volume() {
    let cluster = start(environment().prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    let taints =
        json!({ "spec": { "taints": [{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }] } });
    cluster.sandbox().patch(&NODES, &key("a"), &taints).unwrap();
    delete_pod(cluster.sandbox(), "pod-data");
    cluster
        .eventually("the attachment is being deleted", |sandbox| attachments(sandbox) == ["a data attached deleted"])
        .await;
    cluster.kill();
    cluster.settle().await;
    create_pod(cluster.sandbox(), "new", "b", &["data"]);
    cluster
        .eventually("it is on b", |sandbox| {
            attacher(sandbox);
            is_attached(sandbox, "b", "data")
        })
        .await;
    assert!(cluster.elapsed() < Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn ad_10_a_deleted_node_keeps_what_it_used_for_six_minutes() {
    for (is_in_use, seconds) in [(true, 355), (false, 0)] {
        let cluster = start(environment().prepare(move |sandbox| {
            create_attached(sandbox, &["data".to_owned()]);
            if !is_in_use {
                set_in_use(sandbox, "a", &[]);
            }
        }))
        .await;
        cluster.sandbox().delete_now(&NODES, &key("a")).unwrap();
        delete_pod(cluster.sandbox(), "pod-data");
        let held = |sandbox: &Sandbox| attachments(sandbox) == ["a data attached"];
        if is_in_use {
            cluster.consistently("it is held", Duration::from_secs(seconds), held).await;
        }
        until_detached(&cluster).await;
        assert_eq!(cluster.elapsed() > Duration::from_mins(5), is_in_use);
    }
}

#[tokio::test(start_paused = true)]
async fn ad_3_a_pod_of_a_node_that_does_not_exist_gets_its_volume_when_the_node_is_there() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "c", &["data"]);
    cluster.advance(Duration::from_mins(1)).await;
    assert!(attachments(cluster.sandbox()).is_empty());
    create_node(cluster.sandbox(), "c");
    until_attached(&cluster, "c", "data").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_recreated_while_its_report_is_written_gets_its_volumes() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    cluster.eventually("an attachment", |sandbox| attachments(sandbox) == ["a data"]).await;
    let slow = Fault::on(Verb::Patch).resource(NODES).name("a").times(1).delay(Duration::from_secs(5));
    cluster.sandbox().faults().inject(slow);
    attacher(cluster.sandbox());
    cluster.advance(Duration::from_secs(1)).await;
    cluster.sandbox().delete_now(&NODES, &key("a")).unwrap();
    create_node(cluster.sandbox(), "a");
    cluster.advance(Duration::from_mins(1)).await;
    assert!(is_attached(cluster.sandbox(), "a", "data"), "{:?}", writes(&cluster));
    assert_eq!(writes(&cluster).iter().filter(|write| write.starts_with("PATCH")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn t_15_a_node_that_attaches_its_volumes_itself_is_left_alone() {
    let cluster = start(environment().prepare(|sandbox| {
        create_attached(sandbox, &["data".to_owned()]);
        let annotations = json!({ "volumes.kubernetes.io/controller-managed-attach-detach": null });
        sandbox.patch(&NODES, &key("a"), &json!({ "metadata": { "annotations": annotations } })).unwrap();
        set_in_use(sandbox, "a", &[]);
    }))
    .await;
    create_bound(cluster.sandbox(), "other", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["other"]);
    delete_pod(cluster.sandbox(), "pod-data");
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"]);
    assert_eq!(writes(&cluster), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pl_11_t_18_entries_of_unknown_plugins_stay_and_cost_nothing() {
    let unknown = ["vendor/driver/pv", "kubernetes.io/rbd/pool:image"];
    let cluster = start(environment().prepare(move |sandbox| {
        let entries: Vec<_> = unknown.iter().map(|name| json!({ "name": name, "devicePath": "/dev/x" })).collect();
        patch_node(sandbox, "a", &json!({ "volumesAttached": entries }));
    }))
    .await;
    cluster.advance(Duration::from_mins(10)).await;
    assert!(cluster.requests_of(IDENTITY).is_empty());
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    until_attached(&cluster, "a", "data").await;
    assert_eq!(reported(cluster.sandbox(), "a"), [unknown[0], unknown[1], &unique_name("data")]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_decoded_holds_its_volumes() {
    let environment = environment().allow_error("Object cannot be decoded");
    let cluster = start(environment.prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    let client = DirectClient::new(cluster.sandbox());
    client.merge(&NODES, &key("a"), Some("status"), &json!({ "status": { "volumesInUse": 5 } })).unwrap();
    cluster.settle().await;
    delete_pod(cluster.sandbox(), "pod-data");
    create_pod(cluster.sandbox(), "new", "b", &["data"]);
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"]);
    client.merge(&NODES, &key("a"), Some("status"), &json!({ "status": { "volumesInUse": [] } })).unwrap();
    cluster
        .eventually("it is on b", |sandbox| {
            attacher(sandbox);
            is_attached(sandbox, "b", "data")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn t_16_b_14_a_pod_that_is_deleted_after_its_claim_leaves_its_volume() {
    let cluster = start(environment().prepare(|sandbox| create_attached(sandbox, &["data".to_owned()]))).await;
    let claim = super::fixtures::in_shop("data");
    let none = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&super::fixtures::CLAIMS, &claim, &none).unwrap();
    cluster.sandbox().delete_now(&super::fixtures::CLAIMS, &claim).unwrap();
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!(writes(&cluster), [""; 0], "AD-7: the pod needs it");
    assert!(cluster.sandbox().get(&PODS, &super::fixtures::in_shop("pod-data")).is_some());
    set_in_use(cluster.sandbox(), "a", &[]);
    delete_pod(cluster.sandbox(), "pod-data");
    until_detached(&cluster).await;
}
