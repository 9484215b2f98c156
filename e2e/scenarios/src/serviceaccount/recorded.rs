//! Service accounts, tokens, root CAs and aggregated roles while a person works, under the peer and under ours.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::rbac::v1 as rbacv1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::super::recorded::{Record, are_equal, play};
use super::Cluster;

/// The changes; `NAME.json` stands for the manifest of that name.
const CHANGES: [&str; 30] = [
    "create serviceaccount robot",
    "create -f token.json",
    "delete secret token",
    "create -f token.json",
    r#"patch serviceaccount robot -p {"secrets":[{"name":"token"},{"name":"other"}]}"#,
    "annotate serviceaccount robot example.com/note=1",
    "delete secret token",
    "create -f second.json",
    r#"patch secret second -p {"data":{"token":null}}"#,
    r#"patch secret second -p {"data":{"namespace":"b3RoZXI="}}"#,
    r#"patch secret second -p {"data":{"ca.crt":"b3RoZXI="}}"#,
    r#"patch secret second -p {"data":{"mine":"b3RoZXI="}}"#,
    "annotate secret second kubernetes.io/service-account.uid=another --overwrite",
    "create -f third.json",
    "delete serviceaccount robot",
    "create -f of-nobody.json",
    "delete serviceaccount default",
    "delete configmap kube-root-ca.crt",
    r#"patch configmap kube-root-ca.crt -p {"data":{"ca.crt":"another","more":"data"}}"#,
    "annotate configmap kube-root-ca.crt kubernetes.io/description-",
    "label configmap kube-root-ca.crt example.com/note=1",
    "create -f websites.json",
    r#"patch clusterrole websites -p {"rules":[{"apiGroups":["example.com"],"resources":["websites"],"verbs":["list"]}]}"#,
    "label clusterrole websites rbac.authorization.k8s.io/aggregate-to-view-",
    "label clusterrole websites rbac.authorization.k8s.io/aggregate-to-edit=true",
    "create -f all.json",
    "label clusterrole websites example.com/part=1",
    r#"patch clusterrole all -p {"rules":[{"apiGroups":["example.com"],"resources":["websites"],"verbs":["*"]}]}"#,
    "delete clusterrole websites",
    "delete clusterrole all",
];

/// Ours does after each change what the peer did.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let (theirs, ours) = tokio::try_join!(under(&case, Subject::Peer), under(&case, case.subject()))?;
    are_equal(&CHANGES.map(str::to_owned), &theirs, &ours)
}

async fn under(case: &Case, subject: Subject) -> Result<Vec<Record>> {
    let cluster = Cluster::start(case).await?;
    let _manager = cluster.run(subject, &[])?;
    let kubectl = cluster.kubectl("shop");
    kubectl.run("create namespace shop").await?;
    cluster.is_furnished("shop").await?;
    cluster.has_aggregated_roles().await?;
    let mut manifests = BTreeMap::new();
    for object in objects() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        manifests.insert(format!("{name}.json"), kubectl.manifest(&object)?);
    }
    let line = |change: &str| {
        let words = change.split(' ').map(|word| manifests.get(word).map_or(word, String::as_str));
        words.collect::<Vec<_>>().join(" ")
    };
    let authority = std::fs::read_to_string(cluster.plane.logs().join("pki/ca.crt"))?;
    let mut seen = Seen::default();
    let read = async || record(&cluster, &authority, &mut seen).await;
    play(&kubectl, &CHANGES.map(line), read).await.with_context(|| format!("{subject} plays"))
}

fn objects() -> Vec<Value> {
    let secret = |name: &str, account: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": { "name": name, "annotations": { "kubernetes.io/service-account.name": account } },
        })
    };
    let role = |name: &str| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name } });
    let (mut websites, mut all) = (role("websites"), role("all"));
    websites["metadata"]["labels"] = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    websites["rules"] = json!([{ "apiGroups": ["example.com"], "resources": ["websites"], "verbs": ["get"] }]);
    all["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "example.com/part": "1" } }] });
    vec![
        secret("token", "robot"),
        secret("second", "robot"),
        secret("third", "robot"),
        secret("of-nobody", "nobody"),
        websites,
        all,
    ]
}

/// The uids of what was seen under a name, in order.
#[derive(Default)]
struct Seen(BTreeMap<String, Vec<String>>);

impl Seen {
    /// The name of an object, and the how manieth it is under that.
    fn name<K: Resource<DynamicType = ()>>(&mut self, object: &K) -> String {
        let name = format!("{} {}", K::kind(&()), object.name_any());
        let (uids, uid) = (self.0.entry(name.clone()).or_default(), object.uid().unwrap_or_default());
        if !uids.contains(&uid) {
            uids.push(uid);
        }
        format!("{name} {}", uids.len())
    }
}

/// The accounts, token secrets and root CA of the namespace, and the roles that are aggregated or made by a person.
async fn record(cluster: &Cluster, authority: &str, seen: &mut Seen) -> Result<Record> {
    let (all, mut lines) = (ListParams::default(), Record::new());
    let accounts = cluster.api::<corev1::ServiceAccount>("shop").list(&all).await?.items;
    for account in &accounts {
        lines.insert(format!("{}: {} {:?}", seen.name(account), json!(account.secrets), account.annotations()));
    }
    for secret in cluster.api::<corev1::Secret>("shop").list(&all).await? {
        let mut annotations = secret.annotations().clone();
        let uid = annotations.remove("kubernetes.io/service-account.uid");
        let is_of = accounts.iter().any(|account| account.uid() == uid);
        let data = secret.data.clone().unwrap_or_default();
        let data = data.iter().map(|(key, value)| {
            let text = String::from_utf8_lossy(&value.0);
            match key.as_str() {
                "token" => format!("token of {} parts", text.split('.').count()),
                "ca.crt" => format!("root CA {}", text == authority),
                _ => format!("{key} {text}"),
            }
        });
        let data: Vec<String> = data.collect();
        lines.insert(format!("{}: {annotations:?} of an account {is_of}, {data:?}", seen.name(&secret)));
    }
    for map in cluster.api::<corev1::ConfigMap>("shop").list(&all).await? {
        let (name, data) = (seen.name(&map), json!(map.data) == json!({ "ca.crt": authority }));
        lines.insert(format!("{name}: {data} {:?} {:?}", map.annotations(), map.labels()));
    }
    for role in Api::<rbacv1::ClusterRole>::all(cluster.plane.client()).list(&all).await? {
        if !role.name_any().contains(':') {
            let rules = json!(role.rules);
            let managers = role.managed_fields().iter().filter_map(|entry| {
                let by_controller = entry.manager.as_deref() == Some("clusterrole-aggregation-controller");
                by_controller.then(|| entry.operation.clone().unwrap_or_default())
            });
            let managers: Vec<String> = managers.collect();
            lines.insert(format!("{}: aggregated by {managers:?} {rules}", seen.name(&role)));
        }
    }
    Ok(lines)
}
