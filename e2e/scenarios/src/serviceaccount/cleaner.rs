//! The cleaner of legacy tokens in all situations of a token, under the peer and under ours in turns.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, at_rest, eventually};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::Cluster;

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// A round is over when nothing has changed for so long.
const QUIET: Duration = Duration::from_millis(1_500);

/// The secrets, one a line.
type Record = BTreeSet<String>;

/// Labels of secrets that the account references, by their name.
const REFERENCED: [(&str, Option<(&str, &str)>); 12] = [
    ("unused", None),
    ("used-later", Some((LAST_USED, "2999-01-01"))),
    ("used-long-ago", Some((LAST_USED, "2020-01-01"))),
    ("used-some-day", Some((LAST_USED, "some-day"))),
    ("invalid-later", Some((INVALID_SINCE, "2999-01-01"))),
    ("invalid-long-ago", Some((INVALID_SINCE, "2020-01-01"))),
    ("invalid-some-day", Some((INVALID_SINCE, "some-day"))),
    ("in-volume", None),
    ("in-projected", None),
    ("in-env", None),
    ("in-env-from", None),
    ("pulls-images", None),
];

/// A secret that the account references only between the rounds.
const BY_HAND: &str = "by-hand";

/// What a person does between the rounds.
const BETWEEN: [&str; 5] = [
    "label --overwrite secret used-long-ago kubernetes.io/legacy-token-invalid-since=2020-01-01",
    "label --overwrite secret unused kubernetes.io/legacy-token-last-used=2999-01-01",
    "label secret used-some-day kubernetes.io/legacy-token-last-used-",
    r#"patch serviceaccount robot -p {"secrets":[{"name":"by-hand"}]}"#,
    "delete pod mounts --now",
];

/// One manager does a round, and the other one does the next: each does to the same secrets what the other does.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let ours = case.subject();
    let (first, second) = tokio::try_join!(rounds(&case, [Subject::Peer, ours]), rounds(&case, [ours, Subject::Peer]))?;
    for (round, (first, second)) in first.iter().zip(&second).enumerate() {
        let differing: Vec<_> = first.symmetric_difference(second).collect();
        ensure!(differing.is_empty(), "they differ after round {round}: {differing:?}");
    }
    Ok(())
}

/// The secrets after each of two rounds.
async fn rounds(case: &Case, subjects: [Subject; 2]) -> Result<[Record; 2]> {
    let cluster = Cluster::start(case).await?;
    let kubectl = cluster.kubectl("default");
    fill(&cluster, &kubectl, subjects[0]).await?;
    let first = round(&cluster, subjects[0], |secrets| {
        find(secrets, "invalid-long-ago").is_none() && find(secrets, "unused").is_some_and(is_invalid)
    });
    let first = first.await.with_context(|| format!("the first round, of {}", subjects[0]))?;
    for change in BETWEEN {
        kubectl.run(change).await?;
    }
    let second = round(&cluster, subjects[1], |secrets| {
        find(secrets, "used-long-ago").is_none() && find(secrets, BY_HAND).is_some_and(is_invalid)
    });
    let second = second.await.with_context(|| format!("the second round, of {}", subjects[1]))?;
    Ok([first, second])
}

fn find<'a>(secrets: &'a [corev1::Secret], name: &str) -> Option<&'a corev1::Secret> {
    secrets.iter().find(|secret| secret.name_any() == name)
}

fn is_invalid(secret: &corev1::Secret) -> bool {
    secret.labels().contains_key(INVALID_SINCE)
}

/// Creates the secrets, their tokens, and what references them.
async fn fill(cluster: &Cluster, kubectl: &Kubectl<'_>, subject: Subject) -> Result<()> {
    let system = cluster.kubectl("kube-system");
    let tracking = "patch configmap kube-apiserver-legacy-service-account-token-tracking";
    eventually("the API server to track tokens", async || {
        system.run(&format!(r#"{tracking} -p {{"data":{{"since":"2020-01-01"}}}}"#)).await
    })
    .await?;
    kubectl.run("create serviceaccount robot").await?;
    let secret = |name: &str, label: Option<(&str, &str)>| {
        let labels: Value = label.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": name, "labels": labels, "annotations": { "kubernetes.io/service-account.name": "robot" },
            },
        })
    };
    let mut items: Vec<Value> = REFERENCED.iter().map(|(name, label)| secret(name, *label)).collect();
    items.extend([secret(BY_HAND, None), pod()]);
    let list = json!({ "apiVersion": "v1", "kind": "List", "metadata": { "name": "all" }, "items": items });
    kubectl.run(&format!("create -f {}", kubectl.manifest(&list)?)).await?;
    let references: Vec<Value> = REFERENCED.iter().map(|(name, _)| json!({ "name": name })).collect();
    kubectl.run(&format!("patch serviceaccount robot -p {}", json!({ "secrets": references }))).await?;
    // All of them are younger than the period that is the default.
    let mut manager = cluster.run(subject, &[])?;
    for name in REFERENCED.map(|(name, _)| name).into_iter().chain([BY_HAND]) {
        cluster.token("default", name).await?;
    }
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    Ok(())
}

/// A pod that names secrets in all places where a pod can.
fn pod() -> Value {
    let reference = |name: &str| json!({ "name": name });
    let container = json!({
        "name": "main", "image": "example/main:1",
        "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "in-env", "key": "token" } } }],
        "envFrom": [{ "secretRef": reference("in-env-from") }],
    });
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "mounts" },
        "spec": {
            "serviceAccountName": "robot",
            "imagePullSecrets": [reference("pulls-images")],
            "containers": [container],
            "volumes": [
                { "name": "a", "secret": { "secretName": "in-volume" } },
                { "name": "b", "projected": { "sources": [{ "secret": reference("in-projected") }] } },
            ],
        },
    })
}

/// The secrets after a manager has done a round, which has done its work when `is_done` and nothing else changes.
async fn round(cluster: &Cluster, subject: Subject, is_done: impl Fn(&[corev1::Secret]) -> bool) -> Result<Record> {
    let secrets = cluster.api::<corev1::Secret>("default");
    let mut manager = cluster.run(subject, &["--legacy-service-account-token-clean-up-period=1ms"])?;
    eventually("the round", async || {
        let all = secrets.list(&ListParams::default()).await?.items;
        ensure!(is_done(&all), "{:?}", all.iter().map(line).collect::<Vec<_>>());
        Ok(())
    })
    .await?;
    let read = async || Ok(secrets.list(&ListParams::default()).await?.iter().map(line).collect());
    let record = at_rest(QUIET, read).await?;
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    Ok(record)
}

/// A secret without the day on which the scenario runs.
fn line(secret: &corev1::Secret) -> String {
    let known = ["2020-01-01", "2999-01-01", "some-day"];
    let label = |name: &str| match secret.labels().get(name) {
        Some(day) if known.contains(&day.as_str()) => day.clone(),
        Some(_) => "today".to_owned(),
        None => "never".to_owned(),
    };
    format!("{}: last used {}, invalid since {}", secret.name_any(), label(LAST_USED), label(INVALID_SINCE))
}
