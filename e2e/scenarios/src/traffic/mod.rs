//! The controllers of traffic and size side by side: two clusters of both IP families see the same changes, one under the
//! peer and one under ours. Then each manager replaces the other.

mod autoscalers;
mod budgets;
mod ranges;
mod requests;
mod services;
mod shown;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::aggregated_api::AggregatedApi;
use kcm_e2e_harness::audit::forbidden;
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, Setup, start_manager};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use self::requests::Requests;
use crate::recorded::Record;

kcm_e2e_harness::scenarios! {
    Setup::of("endpoint,endpointslice,endpointslicemirroring,service-cidr-controller,disruption,horizontalpodautoscaling").ours().with_own_managers() => {
        "traffic/acts_as_recorded_and_is_handed_over": acts_as_recorded_and_is_handed_over,
    }
}

/// How many rounds of changes there are; the first one sets up what the others change.
const ROUNDS: usize = 6;

/// The scripts, of which each round makes its changes one after the other.
const SCRIPTS: [&[&[&str]; ROUNDS]; 5] =
    [&services::SELECTING, &services::MIRRORED, &ranges::CHANGES, &budgets::CHANGES, &autoscalers::CHANGES];

/// The changes while no manager runs.
const BETWEEN: [&[&str]; 5] =
    [services::SELECTING_BETWEEN, services::MIRRORED_BETWEEN, ranges::BETWEEN, budgets::BETWEEN, autoscalers::BETWEEN];

/// What those do not concern. Its slices are those of the services of these names.
const AT_REST: [&str; 14] = [
    "rest", "still", "two", "turns", "none", "quiet", "alone", "twin-b", "large", "value", "hits", "slow", "limited",
    "lost",
];

/// A change has had its effect when nothing else has changed for so long.
const QUIET: Duration = Duration::from_millis(1_500);

/// How long two clusters may differ: longer than deletions of service CIDRs wait.
const SAME: Duration = Duration::from_secs(25);

/// Ours does after each round of changes what the peer did, with the roles of its controllers alone. When one manager has
/// replaced the other, what changed in between is done, and nothing else is written.
async fn acts_as_recorded_and_is_handed_over(case: Case) -> Result<()> {
    let (theirs, ours) = tokio::try_join!(Cluster::start(), Cluster::start())?;
    let clusters = [theirs, ours];
    let at = |round: usize| SCRIPTS.iter().flat_map(|script| script[round].iter().copied()).collect::<Vec<&str>>();
    change(&clusters, &at(0)).await?;
    let mut managers = manage(&case, &clusters, [Subject::Peer, Subject::Ours]).await?;
    are_alike(&clusters).await.context("before the first change")?;
    for round in 1..ROUNDS {
        change(&clusters, &at(round)).await?;
        are_alike(&clusters).await.with_context(|| format!("after round {round}"))?;
    }

    for manager in &mut managers {
        manager.must_run()?;
        manager.terminate()?;
        manager.wait(PATIENCE).await?;
    }
    change(&clusters, &BETWEEN.concat()).await?;
    let mut before = Vec::new();
    for cluster in &clusters {
        before.push(cluster.versions().await?);
    }
    let mut managers = manage(&case, &clusters, [Subject::Ours, Subject::Peer]).await?;
    are_alike(&clusters).await.context("after the handover")?;
    for ((cluster, before), next) in clusters.iter().zip(before).zip(["ours", "the peer"]) {
        let now = cluster.versions().await?;
        let written: Vec<_> = now.iter().filter(|(object, version)| before.get(*object) != Some(version)).collect();
        ensure!(now.len() == before.len() && written.is_empty(), "{next} wrote at rest: {written:?}");
        let refused = forbidden(&cluster.plane.audited()?);
        ensure!(refused.is_empty(), "{refused:?}");
    }
    managers.iter_mut().try_for_each(Process::must_run)
}

/// Makes changes in both clusters.
async fn change(clusters: &[Cluster; 2], changes: &[&str]) -> Result<()> {
    let [theirs, ours] = clusters;
    tokio::try_join!(theirs.change(changes), ours.change(changes)).map(drop)
}

/// Starts a manager in each cluster, and waits until both have begun to act.
async fn manage(case: &Case, clusters: &[Cluster; 2], subjects: [Subject; 2]) -> Result<Vec<Process>> {
    let mut managers = Vec::new();
    for (cluster, subject) in clusters.iter().zip(subjects) {
        let before = cluster.read().await?;
        let args = ["--horizontal-pod-autoscaler-sync-period=1s"];
        let name = format!("traffic-{subject}");
        managers.push(start_manager(&cluster.plane, subject, &name, case.controllers(), &args)?);
        eventually(&format!("{subject} to act"), async || {
            ensure!(cluster.read().await? != before, "nothing has changed");
            Ok(())
        })
        .await?;
    }
    Ok(managers)
}

/// Waits until both clusters have come to rest in the same state.
async fn are_alike(clusters: &[Cluster; 2]) -> Result<()> {
    let [theirs, ours] = clusters;
    let start = Instant::now();
    let (mut since, mut last) = (start, None);
    loop {
        let now = tokio::try_join!(theirs.read(), ours.read())?;
        if last.as_ref() != Some(&now) {
            since = Instant::now();
            last = Some(now.clone());
        }
        let (theirs, ours) = now;
        let is_waiting = theirs.iter().chain(&ours).any(|line| line.starts_with("range") && is_released(line));
        if since.elapsed() >= QUIET && theirs == ours && !is_waiting {
            return Ok(());
        }
        let but = |of: &Record, other: &Record| of.difference(other).cloned().collect::<Vec<_>>();
        let differences = || format!("theirs {:#?}\nours {:#?}", but(&theirs, &ours), but(&ours, &theirs));
        ensure!(start.elapsed() < SAME, "the clusters differ, or do not come to rest: {}", differences());
        sleep(Duration::from_millis(100)).await;
    }
}

/// Whether a service CIDR only waits for the time in which every API server learns of its deletion.
fn is_released(line: &str) -> bool {
    line.contains("deleted true") && !line.contains("Terminating")
}

/// A control plane of both families with metrics APIs, on which one manager runs.
struct Cluster {
    plane: ControlPlane,
    requests: Requests,
    metrics: AggregatedApi,
}

impl Cluster {
    async fn start() -> Result<Self> {
        let families = "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112".to_owned();
        let plane =
            ControlPlane::start(Options { strict: true, api_server_args: vec![families], ..Options::default() })
                .await?;
        let metrics = AggregatedApi::start(plane.logs()).await?;
        let requests = Requests(plane.client());
        requests.make(r#"create serviceaccounts {"metadata":{"name":"default"}}"#).await?;
        for object in metrics.registrations(&autoscalers::SERVED) {
            let plural = if object["kind"] == "Service" { "services" } else { "apiservices" };
            requests.make(&format!("create {plural} {object}")).await?;
        }
        eventually("the metrics APIs", async || {
            for object in requests.list("apiservices").await? {
                let conditions = object["status"]["conditions"].as_array();
                let is_served = conditions.is_some_and(|all| all.iter().any(|one| one["status"] == "True"));
                ensure!(is_served, "{} is not available", object["metadata"]["name"]);
            }
            Ok(())
        })
        .await?;
        Ok(Self { plane, requests, metrics })
    }

    async fn change(&self, changes: &[&str]) -> Result<()> {
        for change in changes {
            let made = async {
                if !self.requests.make(change).await? {
                    autoscalers::make(change, &self.requests, &self.metrics).await?;
                }
                anyhow::Ok(())
            };
            made.await.with_context(|| format!("cannot make the change {change}"))?;
        }
        Ok(())
    }

    async fn read(&self) -> Result<Record> {
        let mut record = Record::new();
        for kind in shown::KINDS {
            record.extend(self.requests.list(kind).await?.iter().filter_map(|object| shown::line(kind, object)));
        }
        Ok(record)
    }

    /// The versions of the objects that are at rest.
    async fn versions(&self) -> Result<BTreeMap<String, String>> {
        let mut versions = BTreeMap::new();
        for kind in &shown::KINDS[..6] {
            for object in self.requests.list(kind).await? {
                let metadata = &object["metadata"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let service = &metadata["labels"]["kubernetes.io/service-name"];
                let name = text(if service.is_null() { &metadata["name"] } else { service });
                if AT_REST.contains(&name.as_str()) {
                    versions.insert(format!("{kind}/{}", text(&metadata["name"])), text(&metadata["resourceVersion"]));
                }
            }
        }
        Ok(versions)
    }
}
