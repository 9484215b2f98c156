//! Scrapes of both managers after the same load: names, labels, buckets and counts, and the queries of dashboards.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kcm_e2e_harness::binaries;
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::peer_metrics::PeerMetrics;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;

use super::exposition::{self, Family};

/// What the scrapes do not share, and why.
const DIFFERENCES: &str = include_str!("differences.tsv");

/// The queries of dashboards and alerts.
const QUERIES: &str = include_str!("queries.tsv");

/// The queries that have an answer with the one and none with the other.
const OTHER_ANSWERS: &[(&str, &str)] = &[
    ("dashboard/goroutines", "there is no Go runtime"),
    ("dashboard/request_rate_4xx", "only one of them may have had a conflict"),
    ("dashboard/work_queue_add_rate", "upstream's files of certificates have queues, too"),
    ("dashboard/work_queue_depth", "upstream's files of certificates have queues, too"),
];

/// What is counted alike whatever the timing: a name, and labels.
type Count = (&'static str, &'static [(&'static str, &'static str)]);

const COUNTS: &[Count] = &[
    ("rest_client_requests_total", &[("code", "201"), ("method", "POST")]),
    ("rest_client_request_size_bytes_count", &[("verb", "POST")]),
    ("rest_client_response_size_bytes_count", &[("verb", "POST")]),
    ("rest_client_request_duration_seconds_count", &[("verb", "POST")]),
    ("rest_client_request_duration_seconds_count", &[("verb", "DELETE")]),
    ("replicaset_controller_sorting_deletion_age_ratio_count", &[]),
];

/// The scrapes of one manager: in the midst of the load, and after it.
struct Scrapes {
    before: String,
    after: String,
}

pub(super) async fn agree(case: Case) -> Result<()> {
    let ours = scrapes(&case, Subject::Ours).await?;
    let peers = scrapes(&case, Subject::Peer).await?;
    let mut differences = differences(&exposition::read(&ours.after), &exposition::read(&peers.after));
    for (name, labels) in COUNTS {
        let (ours, peers) = (exposition::sum(&ours.after, name, labels), exposition::sum(&peers.after, name, labels));
        if (ours - peers).abs() > f64::EPSILON {
            differences.push(format!("{name} {labels:?}: {ours} here, {peers} there"));
        }
    }
    differences.extend(other_counts(&ours.after, &peers.after));
    differences.extend(other_answers(&answers(&ours)?, &answers(&peers)?));
    ensure!(differences.is_empty(), "the scrapes differ:\n{}", differences.join("\n"));
    Ok(())
}

/// Starts a manager, and scrapes it when a deployment of three is created, and when that is scaled to one.
async fn scrapes(case: &Case, subject: Subject) -> Result<Scrapes> {
    let [port] = free_ports()?;
    let metrics = PeerMetrics::at(port)?;
    let mut args = metrics.args().to_vec();
    // As one user both, so that neither creates tokens.
    args.push(format!("--kubeconfig={}", case.plane().kubeconfig().display()));
    args.push("--use-service-account-credentials=false".to_owned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let _manager = case.start(subject, &args)?;
    let both_run = || async {
        let page = metrics.read().await?;
        let queues = ["deployment", "replicaset"].map(|name| format!("workqueue_depth{{name=\"{name}\"}}"));
        ensure!(queues.iter().all(|queue| page.contains(queue)), "no queues yet");
        Ok(())
    };
    eventually("both controllers run", both_run).await?;
    let deployments: Api<Deployment> = case.api();
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    }))?;
    deployments.create(&PostParams::default(), &deployment).await.context("cannot create the deployment")?;
    replicas_are(case, 3).await?;
    // A rate needs two samples, so the first scrape has the series of the second.
    let before = metrics.read().await?;
    let scale = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    deployments.patch("web", &PatchParams::default(), &scale).await.context("cannot scale the deployment")?;
    replicas_are(case, 1).await?;
    // A replica set, three pods, and an event for each change: the events are sent last.
    let sent = async || {
        let page = metrics.read().await?;
        let creations = exposition::sum(&page, "rest_client_requests_total", &[("code", "201"), ("method", "POST")]);
        ensure!(creations > 10.5, "{creations} objects and events were created");
        Ok(page)
    };
    let after = eventually("the events are sent", sent).await?;
    let gone = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    deployments.delete("web", &gone).await.context("cannot delete the deployment")?;
    let (sets, pods): (Api<k8s_openapi::api::apps::v1::ReplicaSet>, Api<Pod>) = (case.api(), case.api());
    sets.delete_collection(&gone, &ListParams::default()).await.context("cannot delete the replica sets")?;
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete_collection(&now, &ListParams::default()).await.context("cannot delete the pods")?;
    Ok(Scrapes { before, after })
}

async fn replicas_are(case: &Case, count: i32) -> Result<()> {
    let deployments: Api<Deployment> = case.api();
    let check = || async {
        let web = deployments.get("web").await?;
        let status = web.status.unwrap_or_default();
        ensure!(status.replicas == Some(count) && status.observed_generation == web.metadata.generation, "{status:?}");
        Ok(())
    };
    eventually(&format!("the deployment has {count} pods"), check).await
}

/// Whether a row of the list explains what is found in `who` alone, or counted otherwise.
fn is_explained(who: &str, name: &str) -> bool {
    let rows =
        DIFFERENCES.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.into_iter().any(|row| row.len() == 3 && row[0] == who && name.starts_with(row[1]))
}

/// What the scrapes do not share and the list does not explain. A family without samples has neither labels nor buckets.
fn differences(ours: &BTreeMap<String, Family>, peers: &BTreeMap<String, Family>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, peer) in peers {
        match ours.get(name) {
            None if is_explained("peer", name) => {}
            None => found.push(format!("{name}: only upstream has it")),
            Some(own) if own == peer => {}
            Some(own) => found.push(format!("{name}: {own:?} here, {peer:?} there")),
        }
    }
    let own_alone = ours.keys().filter(|name| !peers.contains_key(*name) && !is_explained("ours", name));
    found.extend(own_alone.map(|name| format!("{name}: only ours has it")));
    found
}

/// The counters and histograms that both have, whose counts differ and the list does not explain.
fn other_counts(ours: &str, peers: &str) -> Vec<String> {
    let families = exposition::read(peers);
    let counted = families.iter().filter_map(|(name, family)| match family.kind.as_str() {
        "counter" => Some(name.clone()),
        "histogram" => Some(format!("{name}_count")),
        _other => None,
    });
    let differing = counted.filter_map(|name| {
        let (own, peer) = (exposition::sum(ours, &name, &[]), exposition::sum(peers, &name, &[]));
        let is_shared = exposition::read(ours).contains_key(name.strip_suffix("_count").unwrap_or(&name));
        (is_shared && (own - peer).abs() > f64::EPSILON && !is_explained("count", &name))
            .then(|| format!("{name}: {own} here, {peer} there"))
    });
    differing.collect()
}

/// The answers of Prometheus' engine to the queries, by their names: how many series each has.
fn answers(scrapes: &Scrapes) -> Result<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().context("no folder for the scrapes")?;
    let write = |name: &str, text: &str| -> Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    };
    let queries = write("queries.tsv", QUERIES)?;
    let (before, after) = (write("before", &scrapes.before)?, write("after", &scrapes.after)?);
    let mut promql = Command::new(binaries::control_plane("promql")?);
    // As if they were scraped half a minute apart.
    let output = promql.arg(queries).arg(format!("1000={before}")).arg(format!("1030={after}")).output();
    let output = output.context("promql cannot be run")?;
    ensure!(output.status.success(), "promql failed: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).context("promql printed no text")?;
    let answers = lines.lines().filter_map(|line| line.split_once('\t'));
    Ok(answers.map(|(name, answer)| (name.to_owned(), answer.to_owned())).collect())
}

/// The queries that the engine refuses, or that both scrapes do not answer alike.
fn other_answers(ours: &BTreeMap<String, String>, peers: &BTreeMap<String, String>) -> Vec<String> {
    let asked = QUERIES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
    let is_excused = |name: &str| OTHER_ANSWERS.iter().any(|(excused, _)| *excused == name);
    let differing = asked.filter_map(|(name, _)| match (ours.get(name), peers.get(name)) {
        (Some(own), Some(peer)) if own.starts_with("error") || peer.starts_with("error") => {
            Some(format!("{name}: {own} here, {peer} there"))
        }
        (Some(own), Some(peer)) if own == peer || is_excused(name) => None,
        (own, peer) => Some(format!("{name}: {own:?} here, {peer:?} there")),
    });
    differing.collect()
}
