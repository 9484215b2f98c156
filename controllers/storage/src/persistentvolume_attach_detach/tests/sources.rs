//! Sources other than a CSI volume of a claim, and claims that are not ready.

use std::time::Duration;

use kcm_testing::sandbox::{NODES, PODS, Sandbox};
use serde_json::{Value, json};

use super::fixtures::{
    ATTACHMENTS, CLAIMS, DRIVER, DRIVERS, IDENTITY, attacher, attachments, bind, create_bound, create_bound_source,
    create_pod, create_pod_with, delete_pod, environment, in_shop, key, patch_node, reported, start, until_attached,
    until_detached, writes,
};

const RWO: &str = "ReadWriteOnce";

#[tokio::test(start_paused = true)]
async fn ad_5_a_claim_that_is_bound_later_attaches_its_volume() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    cluster.sandbox().patch_status(&CLAIMS, &in_shop("data"), &json!({ "status": { "phase": "Pending" } })).unwrap();
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(writes(&cluster), [""; 0]);
    bind(cluster.sandbox(), "data");
    until_attached(&cluster, "a", "data").await;
}

#[tokio::test(start_paused = true)]
async fn ad_4_an_ephemeral_volume_must_be_of_its_pod() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "web-v", RWO);
    let spec = json!({ "accessModes": [RWO], "resources": { "requests": { "storage": "1Gi" } } });
    let volumes = json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": spec } } }]);
    create_pod_with(cluster.sandbox(), "web", "a", &volumes);
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(writes(&cluster), [""; 0]);
    delete_pod(cluster.sandbox(), "web");
    create_pod_with(cluster.sandbox(), "web", "a", &volumes);
    let uid = cluster.sandbox().get(&PODS, &in_shop("web")).unwrap()["metadata"]["uid"].clone();
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true });
    let owners = json!({ "metadata": { "ownerReferences": [owner] }, "status": { "phase": "Pending" } });
    cluster.sandbox().patch(&CLAIMS, &in_shop("web-v"), &owners).unwrap();
    cluster.sandbox().patch_status(&CLAIMS, &in_shop("web-v"), &json!({ "status": { "phase": "Lost" } })).unwrap();
    bind(cluster.sandbox(), "web-v");
    until_attached(&cluster, "a", "web-v").await;
}

#[tokio::test(start_paused = true)]
async fn pl_8_ad_6_a_driver_without_attachments_has_none() {
    let driver = |required: bool| json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": required } });
    let cluster = start(environment().prepare(move |sandbox| {
        sandbox.create(&DRIVERS, driver(false)).unwrap();
        create_bound(sandbox, "data", RWO);
        create_pod(sandbox, "web", "a", &["data"]);
    }))
    .await;
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(writes(&cluster), [""; 0]);
    cluster.sandbox().delete_now(&DRIVERS, &key(DRIVER)).unwrap();
    until_attached(&cluster, "a", "data").await;
    cluster.sandbox().create(&DRIVERS, driver(false)).unwrap();
    until_detached(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn pl_7_a_fibre_channel_volume_is_reported_and_no_more() {
    let cluster = start(environment()).await;
    create_bound_source(cluster.sandbox(), "disk", RWO, &json!({ "fc": { "targetWWNs": ["w1", "w2"], "lun": 0 } }));
    create_pod(cluster.sandbox(), "web", "a", &["disk"]);
    let name = "kubernetes.io/fc/[w1 w2]:0";
    cluster.eventually("it is reported", |sandbox| reported(sandbox, "a") == [name]).await;
    create_pod(cluster.sandbox(), "new", "b", &["disk"]);
    cluster.settle().await;
    delete_pod(cluster.sandbox(), "web");
    cluster
        .eventually("it moves", |sandbox| reported(sandbox, "a").is_empty() && reported(sandbox, "b") == [name])
        .await;
    assert!(attachments(cluster.sandbox()).is_empty());
    cluster.advance(Duration::from_mins(10)).await;
    let expected = ["PATCH nodes/a/status", "PATCH nodes/a/status", "PATCH nodes/b/status"];
    assert_eq!(writes(&cluster), expected);
    let text = "Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume \"disk\" ";
    assert_eq!(cluster.events_of(IDENTITY).iter().filter(|event| *event == text).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn ad_23_a_fibre_channel_volume_that_is_in_use_after_all_does_not_move() {
    let cluster = start(environment()).await;
    create_bound_source(cluster.sandbox(), "disk", RWO, &json!({ "fc": { "targetWWNs": ["w"], "lun": 0 } }));
    create_pod(cluster.sandbox(), "web", "a", &["disk"]);
    let name = "kubernetes.io/fc/[w]:0";
    cluster.eventually("it is reported", |sandbox| reported(sandbox, "a") == [name]).await;
    create_pod(cluster.sandbox(), "new", "b", &["disk"]);
    cluster.settle().await;
    cluster.sandbox().faults().delay_events(&NODES, Duration::from_secs(5));
    patch_node(cluster.sandbox(), "a", &json!({ "volumesInUse": [name] }));
    delete_pod(cluster.sandbox(), "web");
    let stays = |sandbox: &Sandbox| reported(sandbox, "a") == [name] && reported(sandbox, "b").is_empty();
    cluster.consistently("a has it", Duration::from_mins(10), stays).await;
    let reads = cluster.requests_of(IDENTITY).iter().filter(|request| request.method == "GET").count();
    assert!(reads < 10, "the attempts have a back-off: {reads}");
    patch_node(cluster.sandbox(), "a", &json!({ "volumesInUse": null }));
    cluster
        .eventually("it moves", |sandbox| reported(sandbox, "a").is_empty() && reported(sandbox, "b") == [name])
        .await;
}

#[tokio::test(start_paused = true)]
async fn ad_21_a_translated_volume_of_a_pod_is_in_its_attachment() {
    let cluster = start(environment()).await;
    let volumes = json!([{ "name": "v", "gcePersistentDisk": { "pdName": "disk", "fsType": "ext4", "partition": 0 } }]);
    create_pod_with(cluster.sandbox(), "web", "a", &volumes);
    let name = "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk";
    cluster
        .eventually("it is attached", |sandbox| {
            attacher(sandbox);
            reported(sandbox, "a") == [name]
        })
        .await;
    let spec = cluster.sandbox().list(&ATTACHMENTS, None)[0]["spec"].clone();
    assert_eq!(spec["attacher"], "pd.csi.storage.gke.io");
    let source = &spec["source"]["inlineVolumeSpec"];
    assert_eq!(source["csi"]["volumeHandle"], "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk");
    assert_eq!((&source["csi"]["fsType"], &source["accessModes"]), (&json!("ext4"), &json!([RWO])));
    cluster.kill();
    cluster.settle().await;
    delete_pod(cluster.sandbox(), "web");
    until_detached(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn pl_10_an_installed_flex_driver_is_reported_once_and_never_executed() {
    let folder = std::env::temp_dir().join(format!("kcm-flex-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("vendor~driver")).unwrap();
    let argument = format!("--flex-volume-plugin-dir={}", folder.display());
    let cluster = start(environment().arguments(&[&argument])).await;
    let flex = |driver: &str| json!({ "flexVolume": { "driver": driver } });
    create_bound_source(cluster.sandbox(), "known", RWO, &flex("vendor/driver"));
    create_bound_source(cluster.sandbox(), "unknown", RWO, &flex("vendor/other"));
    create_pod(cluster.sandbox(), "web", "a", &["known", "unknown"]);
    let volumes: Value = json!([{ "name": "inline", "flexVolume": { "driver": "vendor/driver" } }]);
    create_pod_with(cluster.sandbox(), "two", "a", &volumes);
    cluster.advance(Duration::from_mins(10)).await;
    std::fs::remove_dir_all(&folder).unwrap();
    let text = |name: &str| {
        format!(
            "Warning FailedAttachVolume AttachVolume.Attach failed for volume \"{name}\" : flex volume driver \
             vendor/driver attaches in the controller manager, which this manager does not support"
        )
    };
    assert_eq!(cluster.events_of(IDENTITY), [text("inline"), text("known")]);
    assert_eq!(writes(&cluster), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn requests_fit_upstreams_role() {
    let cluster = start(environment()).await;
    create_bound(cluster.sandbox(), "data", RWO);
    create_pod(cluster.sandbox(), "web", "a", &["data"]);
    until_attached(&cluster, "a", "data").await;
    delete_pod(cluster.sandbox(), "web");
    until_detached(&cluster).await;
    let allowed = ["POST volumeattachments", "DELETE volumeattachments/ID", "PATCH nodes/a/status"];
    assert!(writes(&cluster).iter().all(|write| allowed.contains(&&**write)), "{:?}", writes(&cluster));
    let reads = cluster.requests_of(IDENTITY).into_iter().filter(|request| request.method == "GET");
    assert!(reads.map(|request| request.path).all(|path| path == "/api/v1/nodes/a"));
}
