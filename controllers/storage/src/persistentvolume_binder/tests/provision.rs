//! Provisioning on an API server in the process.

use std::time::Duration;

use kcm_testing::sandbox::{NODES, Sandbox};
use serde_json::{Value, json};

use super::fixtures::{
    CLAIMS, COMPONENT, IDENTITY, VOLUMES, claim_key, create_claim, create_class, create_volume, environment, start,
    state_of_claim, state_of_volume, volume_key,
};
use super::life::{delete_claim, events, provisioner};

#[tokio::test(start_paused = true)]
async fn pvb_51_external_provisioners_get_their_annotation_and_bind_with_their_volume() {
    let environment = environment().prepare(|sandbox| {
        create_class(sandbox, "csi", "csi.example.com", "Immediate");
        create_class(sandbox, "old", "kubernetes.io/gce-pd", "Immediate");
        create_class(sandbox, "none", "kubernetes.io/no-provisioner", "Immediate");
        for claim in ["c 1Gi class=csi", "d 1Gi class=old", "e 1Gi class=none", "f 1Gi class=absent"] {
            create_claim(sandbox, claim);
        }
    });
    let cluster = start(environment).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    assert_eq!(provisioner(sandbox, "c"), "csi.example.com");
    assert_eq!(provisioner(sandbox, "d"), "pd.csi.storage.gke.io");
    assert_eq!((provisioner(sandbox, "e"), provisioner(sandbox, "f")), (Value::Null, Value::Null));
    assert_eq!(events(&cluster, "no volume plugin matched name: kubernetes.io/no-provisioner"), 1);
    assert_eq!(events(&cluster, r#"storageclass.storage.k8s.io "absent" not found"#), 1);
    // The stand-in of the provisioner: a volume with the reference and without the annotation of the binder.
    create_volume(sandbox, "v 1Gi class=csi claim=c uid phase=Pending by=csi.example.com policy=Delete");
    cluster
        .eventually("it is bound", |sandbox| state_of_claim(sandbox, "c").starts_with("c volume=v phase=Bound"))
        .await;
    assert!(
        cluster.metrics().contains(
            r#"volume_operation_total_seconds_count{plugin_name="csi.example.com",operation_name="provision"} 1"#
        ),
        "{}",
        cluster.metrics()
    );
    delete_claim(sandbox, "c");
    cluster.eventually("it is released", |sandbox| state_of_volume(sandbox, "v").contains("phase=Released")).await;
    cluster.advance(Duration::from_mins(5)).await;
    assert!(sandbox.get(&VOLUMES, &volume_key("v")).is_some(), "the provisioner deletes it");
}

#[tokio::test(start_paused = true)]
async fn pvb_50_without_dynamic_provisioning_nothing_happens() {
    let environment = environment().arguments(&["--enable-dynamic-provisioning=false"]).prepare(|sandbox| {
        create_class(sandbox, "csi", "csi.example.com", "Immediate");
        create_claim(sandbox, "c 1Gi class=csi");
    });
    let cluster = start(environment).await;
    cluster.advance(Duration::from_mins(1)).await;
    assert!(cluster.writes_of(IDENTITY).is_empty());
}

fn host_path_class(sandbox: &Sandbox) {
    create_class(sandbox, "host", "kubernetes.io/host-path", "Immediate");
}

#[tokio::test(start_paused = true)]
async fn pvb_52_to_56_a_host_path_is_provisioned_and_deleted_with_its_claim() {
    let environment = environment().arguments(&["--enable-hostpath-provisioner"]).prepare(host_path_class);
    let cluster = start(environment).await;
    create_claim(cluster.sandbox(), "c 1Gi class=host");
    cluster.eventually("it is bound", |sandbox| state_of_claim(sandbox, "c").contains("phase=Bound")).await;
    let name =
        cluster.sandbox().get(&CLAIMS, &claim_key("c")).unwrap()["spec"]["volumeName"].as_str().unwrap().to_owned();
    let volume = cluster.sandbox().get(&VOLUMES, &volume_key(&name)).unwrap();
    let path = volume["spec"]["hostPath"]["path"].as_str().unwrap().to_owned();
    assert!(path.starts_with("/tmp/hostpath_pv/") && std::path::Path::new(&path).is_dir());
    assert!(volume["metadata"]["finalizers"].as_array().unwrap().contains(&json!("kubernetes.io/pv-controller")));
    assert_eq!(events(&cluster, "ProvisioningSucceeded"), 1);
    delete_claim(cluster.sandbox(), "c");
    // Volume protection, which another controller ends.
    cluster.eventually("it is released", |sandbox| state_of_volume(sandbox, &name).contains("phase=Released")).await;
    let is_terminating = |sandbox: &Sandbox| {
        sandbox
            .get(&VOLUMES, &volume_key(&name))
            .is_none_or(|volume| !volume["metadata"]["deletionTimestamp"].is_null())
    };
    cluster.eventually("it is deleted", is_terminating).await;
    assert!(!std::path::Path::new(&path).exists());
}

#[tokio::test(start_paused = true)]
async fn pl_3_what_the_host_path_plugin_cannot_do_is_said_once_and_tried_again() {
    let rows: [(&str, &[&str], &str); 3] = [
        ("c 1Gi class=host", &[], "is disabled"),
        (
            "c 1Gi class=host mode=Block",
            &["--enable-hostpath-provisioner"],
            "does not support block volume provisioning",
        ),
        ("c 1Gi class=host node=absent", &["--enable-hostpath-provisioner"], "Failed to get target node"),
    ];
    for (claim, arguments, message) in rows {
        let environment = environment().arguments(arguments).prepare(host_path_class);
        let cluster = start(environment).await;
        create_claim(cluster.sandbox(), claim);
        cluster.advance(Duration::from_mins(3)).await;
        assert_eq!(events(&cluster, message), 1, "{claim}: {:?}", cluster.events_of(COMPONENT));
        assert!(cluster.sandbox().list(&VOLUMES, None).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn pvb_54_another_node_is_asked_for_if_provisioning_fails() {
    let environment = environment().arguments(&["--enable-hostpath-provisioner"]).prepare(|sandbox| {
        create_class(sandbox, "host", "kubernetes.io/host-path", "WaitForFirstConsumer");
        sandbox.create(&NODES, json!({ "metadata": { "name": "n1" } })).unwrap();
    });
    let cluster = start(environment).await;
    create_claim(cluster.sandbox(), "c 1Gi class=host mode=Block node=n1");
    cluster
        .eventually("the node is removed", |sandbox| {
            sandbox.get(&CLAIMS, &claim_key("c")).unwrap()["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
                .is_null()
        })
        .await;
}
