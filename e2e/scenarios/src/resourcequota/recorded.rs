//! Quotas while a person works in a namespace, under the peer and under ours.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::super::alone::Alone;
use super::super::recorded::{Record, are_equal, play};
use super::Shop;

/// The changes. `POD` stands for the flags of a pod that requests processor time, `MANIFEST` for one that nothing limits.
const CHANGES: [&str; 32] = [
    "create quota limits --hard=pods=3,services=3,services.nodeports=1,configmaps=5,secrets=3,resourcequotas=9",
    "create configmap a",
    "create configmap b",
    "delete configmap a",
    "create secret generic a",
    "run one POD",
    "run two POD",
    r#"patch quota limits -p {"spec":{"hard":{"pods":"1"}}}"#,
    r#"patch quota limits -p {"spec":{"hard":{"pods":"4","configmaps":null}}}"#,
    "create quota processors --hard=requests.cpu=2,cpu=3,count/pods=9",
    "create quota scoped --hard=pods=5 --scopes=NotTerminating",
    "create quota ending --hard=pods=5,requests.cpu=1 --scopes=Terminating",
    "create quota modest --hard=pods=5 --scopes=BestEffort",
    r#"patch pod one -p {"spec":{"activeDeadlineSeconds":100}}"#,
    "delete pod two --force --grace-period=0",
    "run three POD",
    r#"patch pod three --subresource=status -p {"status":{"phase":"Succeeded"}}"#,
    "create service clusterip web --tcp=80",
    r#"patch service web -p {"spec":{"type":"NodePort"}}"#,
    r#"patch service web -p {"spec":{"type":"ClusterIP"}}"#,
    "create quota storage --hard=persistentvolumeclaims=3,requests.storage=9Gi,gold.storageclass.storage.k8s.io/requests.storage=5Gi",
    "create -f CLAIM",
    r#"patch pvc claim -p {"metadata":{"finalizers":null}}"#,
    "delete pvc claim",
    "create quota kinds --hard=count/deployments.apps=2,count/jobs.batch=1",
    "create deployment web --image=example/main:1",
    "delete deployment web",
    r#"patch quota kinds --subresource=status -p {"status":{"used":{"count/jobs.batch":"1"}}}"#,
    "label quota kinds example.com/note=1",
    "delete quota scoped",
    "delete service web",
    "delete pod one --force --grace-period=0",
];

/// Ours does after each change what the peer did.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let (theirs, ours) = tokio::try_join!(under(&case, Subject::Peer), under(&case, case.subject()))?;
    are_equal(&CHANGES.map(str::to_owned), &theirs, &ours)
}

async fn under(case: &Case, subject: Subject) -> Result<Vec<Record>> {
    let shop = Shop::create(Alone::start_with(case, subject).await?).await?;
    let kubectl = shop.kubectl();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "claim" },
        "spec": {
            "storageClassName": "gold", "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "2Gi" } },
        },
    });
    let claim = kubectl.manifest(&claim)?;
    let line = |change: &str| match change.strip_suffix(" POD").and_then(|start| start.strip_prefix("run ")) {
        Some(name) => Shop::pod(name),
        None => change.replace("CLAIM", &claim),
    };
    // What has a quota before it is known whether there is anything to count comes later.
    shop.kubectl().run("create quota first --hard=services=1").await?;
    shop.has_status("first").await?;
    let read = async || record(&shop).await;
    play(&kubectl, &CHANGES.map(line), read).await.with_context(|| format!("{subject} plays"))
}

/// Hard limits and usage of each quota.
async fn record(shop: &Shop) -> Result<Record> {
    let quotas: Api<corev1::ResourceQuota> = Api::namespaced(shop.0.plane.client(), "shop");
    let line = |quota: corev1::ResourceQuota| {
        let name = quota.name_any();
        let status = quota.status.unwrap_or_default();
        format!("{name}: {} of {}", json!(status.used), json!(status.hard))
    };
    Ok(quotas.list(&ListParams::default()).await?.into_iter().map(line).collect())
}
