//! Whole lives of attachments on an API server in the process.

use std::time::Duration;

use kcm_testing::sandbox::{Fault, NODES, PODS, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::json;

use super::fixtures::{
    ATTACHMENTS, IDENTITY, attacher, attachments, create_bound, create_pod, delete_pod, environment, in_shop,
    is_attached, reported, set_in_use, start, until_attached, until_detached, watched, writes,
};
use crate::tests::faults::passing_faults;

const RWO: &str = "ReadWriteOnce";

/// A pod comes to node `a`, its volume is attached, mounted, unmounted and detached.
async fn life(cluster: &TestCluster) {
    watched(cluster).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    until_attached(cluster, "a", "data").await;
    set_in_use(cluster.sandbox(), "a", &["data"]);
    cluster.settle().await;
    delete_pod(cluster.sandbox(), "web");
    cluster
        .consistently("it stays attached while it is in use", Duration::from_secs(20), |sandbox| {
            attachments(sandbox) == ["a data attached"]
        })
        .await;
    set_in_use(cluster.sandbox(), "a", &[]);
    until_detached(cluster).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn ad_21_ad_24_a_life_is_four_writes_and_at_rest_nothing_is_sent() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    let text = "Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume \"data\" ";
    assert_eq!(cluster.events_of(IDENTITY), [text]);
    cluster.advance(Duration::from_hours(2)).await;
    let expected =
        ["POST volumeattachments", "PATCH nodes/a/status", "PATCH nodes/a/status", "DELETE volumeattachments/ID"];
    assert_eq!(writes(&cluster), expected);
    let reads: Vec<_> = cluster.requests_of(IDENTITY).into_iter().filter(|request| request.method == "GET").collect();
    assert_eq!(reads.iter().map(|request| &*request.path).collect::<Vec<_>>(), ["/api/v1/nodes/a"], "AD-23");
    let metrics = cluster.metrics();
    for operation in ["volume_attach", "volume_detach"] {
        let line = format!(
            "storage_operation_duration_seconds_count{{volume_plugin=\"kubernetes.io/csi:csi.example.com\",\
             operation_name=\"{operation}\",status=\"success\",migrated=\"false\"}} 1"
        );
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn ad_21_the_bodies_are_upstreams_with_uids() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    let bodies = cluster.bodies_of(IDENTITY, "POST");
    let spec = json!({ "attacher": "csi.example.com", "nodeName": "a", "source": { "persistentVolumeName": "data" } });
    assert_eq!(bodies[0]["spec"], spec);
    let uid = cluster.sandbox().get(&NODES, &super::fixtures::key("a")).unwrap()["metadata"]["uid"].clone();
    let entry = json!({ "name": "kubernetes.io/csi/csi.example.com^handle-data", "devicePath": "" });
    let report = |volumes| json!({ "metadata": { "uid": uid }, "status": { "volumesAttached": volumes } });
    assert_eq!(cluster.bodies_of(IDENTITY, "PATCH"), [report(json!([entry])), report(json!(null))]);
    let deletions = cluster.bodies_of(IDENTITY, "DELETE");
    assert!(deletions[0]["preconditions"]["uid"].is_string(), "B-12: {deletions:?}");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, life).await;
    assert_eq!(writes, 4);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for resource in [ATTACHMENTS, NODES] {
        for fault in passing_faults() {
            let cluster = environment().start().await;
            cluster.sandbox().faults().inject(fault.resource(resource.clone()));
            life(&cluster).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_late_watches() {
    for resource in [ATTACHMENTS, NODES, PODS] {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().delay_events(&resource, Duration::from_secs(10));
        life(&cluster).await;
        let attaches = writes(&cluster).iter().filter(|write| write.starts_with("POST")).count();
        assert_eq!(attaches, 1, "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn t_12_ad_31_a_volume_follows_its_pod_and_is_never_on_two_nodes() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "old", "a", &["data"]);
    until_attached(&cluster, "a", "data").await;
    set_in_use(cluster.sandbox(), "a", &["data"]);
    create_pod(cluster.sandbox(), "new", "b", &["data"]);
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"]);
    delete_pod(cluster.sandbox(), "old");
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!(attachments(cluster.sandbox()), ["a data attached"], "it is in use");
    set_in_use(cluster.sandbox(), "a", &[]);
    cluster
        .eventually("it is on b", |sandbox| {
            attacher(sandbox);
            assert!(attachments(sandbox).len() <= 1, "{:?}", attachments(sandbox));
            is_attached(sandbox, "b", "data")
        })
        .await;
    assert!(reported(cluster.sandbox(), "a").is_empty());
    let succeeded = "Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume \"data\" ";
    let waiting =
        "Warning FailedAttachVolume Waiting for detach for volume \"data\" Volume is already used by pod(s) old";
    assert_eq!(cluster.events_of(IDENTITY), [succeeded, succeeded, waiting]);
}

#[tokio::test(start_paused = true)]
async fn ad_25_a_volume_whose_report_is_gathered_is_not_reported_once_it_is_being_detached() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    cluster.eventually("an attachment", |sandbox| attachments(sandbox) == ["a data"]).await;
    let slow = Fault::on(Verb::Delete).resource(ATTACHMENTS).delay(Duration::from_millis(500));
    cluster.sandbox().faults().inject(slow);
    attacher(cluster.sandbox());
    cluster.advance(Duration::from_millis(40)).await;
    assert_eq!(cluster.events_of(IDENTITY).len(), 1, "the report is requested");
    delete_pod(cluster.sandbox(), "web");
    until_detached(&cluster).await;
    assert_eq!(writes(&cluster), ["POST volumeattachments", "DELETE volumeattachments/ID"]);
}

#[tokio::test(start_paused = true)]
async fn ad_16_a_shared_volume_is_on_two_nodes() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", "ReadWriteMany");
    create_pod(cluster.sandbox(), "one", "a", &["data"]);
    create_pod(cluster.sandbox(), "two", "b", &["data"]);
    until_attached(&cluster, "a", "data").await;
    until_attached(&cluster, "b", "data").await;
}

#[tokio::test(start_paused = true)]
async fn ad_22_a_driver_that_fails_is_reported_with_back_off() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    cluster.settle().await;
    let name = cluster.sandbox().list(&ATTACHMENTS, None)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let status = json!({ "status": { "attached": false, "attachError": { "message": "no disk" } } });
    cluster.sandbox().patch_status(&ATTACHMENTS, &super::fixtures::key(&name), &status).unwrap();
    cluster.advance(Duration::from_secs(4)).await;
    let text = "Warning FailedAttachVolume AttachVolume.Attach failed for volume \"data\" : no disk";
    assert!(cluster.events_of(IDENTITY).iter().all(|event| event == text));
    assert!(!cluster.events_of(IDENTITY).is_empty());
    assert_eq!(writes(&cluster), ["POST volumeattachments"], "the attachment is the attempt");
    until_attached(&cluster, "a", "data").await;
}

#[tokio::test(start_paused = true)]
async fn ad_21_a_driver_that_does_not_respond_is_reported_after_two_minutes() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    cluster.advance(Duration::from_secs(119)).await;
    assert_eq!(cluster.events_of(IDENTITY), [""; 0]);
    cluster.advance(Duration::from_secs(3)).await;
    let text = "Warning FailedAttachVolume AttachVolume.Attach failed for volume \"data\" : timed out waiting for \
                external-attacher of csi.example.com CSI driver to attach volume handle-data";
    assert_eq!(cluster.events_of(IDENTITY), [text]);
}

#[tokio::test(start_paused = true)]
async fn ad_22_an_attachment_that_is_refused_is_tried_again() {
    let cluster = start(environment()).await;
    let refused = Status::new(403, "Forbidden", "quota exceeded");
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(ATTACHMENTS).times(2).fail(refused));
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    until_attached(&cluster, "a", "data").await;
    let text = "Warning FailedAttachVolume AttachVolume.Attach failed for volume \"data\" : kubernetes.io/csi: \
                attacher.Attach failed: quota exceeded";
    assert!(cluster.events_of(IDENTITY).contains(&text.to_owned()), "{:?}", cluster.events_of(IDENTITY));
}

#[tokio::test(start_paused = true)]
async fn ad_2_a_pod_that_has_finished_needs_no_volume() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "job", "a", &["data"]);
    until_attached(&cluster, "a", "data").await;
    cluster.sandbox().set_pod_phase(&in_shop("job"), "Succeeded").unwrap();
    until_detached(&cluster).await;
}
