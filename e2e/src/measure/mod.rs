//! What it costs to keep replica sets: memory, CPU and requests, of both managers in the same run.
//!
//! Each manager gets a control plane of its own, without nodes, so that pods stay as they were
//! made and only the manager works. The figures of one step are those of the way from the step
//! before to this one.

mod report;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{TryStreamExt, stream};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

pub use self::report::{Figures, Report, Step};
use crate::control_plane::{ControlPlane, Options};
use crate::manager::{Manager, Subject};
use crate::requests::Requests;
use crate::wait;

/// Pods of each replica set.
const PODS: usize = 50;

const NAMESPACE: &str = "measure";

const ARGS: [&str; 3] = ["--controllers=replicaset", "--kube-api-qps=1000", "--kube-api-burst=2000"];

/// How long a step may take.
const LIMIT: Duration = Duration::from_mins(10);

/// Memory is read once nothing has changed for so long: a garbage collector has had its turn.
const REST: Duration = Duration::from_secs(15);

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whose managers, in this order.
    pub subjects: Vec<Subject>,
    /// How often; each figure is the median.
    pub runs: usize,
    /// How many replica sets there are at the end of each step.
    pub steps: Vec<usize>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { subjects: Subject::ALL.to_vec(), runs: 1, steps: vec![100, 400] }
    }
}

impl Plan {
    /// Refuses a plan that measures nothing.
    ///
    /// # Errors
    ///
    /// Which part of it does not fit.
    pub fn check(&self) -> Result<()> {
        ensure!(self.runs > 0, "`--runs` must be at least 1");
        ensure!(!self.steps.is_empty(), "`--steps` must name at least one step");
        ensure!(self.steps.is_sorted_by(|one, next| one < next) && self.steps[0] > 0, "`--steps` must rise");
        Ok(())
    }
}

/// Measures as planned and tells `progress` what is being done.
///
/// # Errors
///
/// If a program is missing or ends, or a step takes too long.
pub async fn run(plan: &Plan, progress: &dyn Fn(&str)) -> Result<Report> {
    for subject in &plan.subjects {
        subject.program()?;
    }
    let mut report = Report::default();
    for run in 1..=plan.runs {
        for &subject in &plan.subjects {
            progress(&format!("run {run} of {}: {subject}", plan.runs));
            let mut plane = ControlPlane::start(Options::default()).await?;
            match one(&plane, subject, plan, progress).await {
                Ok(figures) => report.add(subject, figures),
                Err(error) => {
                    plane.keep_logs();
                    let logs = plane.logs().display();
                    return Err(error).with_context(|| format!("while measuring {subject} (logs: {logs})"));
                }
            }
        }
    }
    Ok(report)
}

async fn one(plane: &ControlPlane, subject: Subject, plan: &Plan, progress: &dyn Fn(&str)) -> Result<Figures> {
    let client = plane.client();
    make_namespace(&client).await?;
    let mut manager = Manager::start(subject, plane, &subject.to_string(), &ARGS)?;
    // Shows that its caches are filled and that it works, so that it is idle afterwards, not starting.
    make_sets(&client, "probe", 0..1, 1).await?;
    complete(&client, &[("probe", 1, 1)]).await?;
    let idle_bytes = at_rest(&mut manager).await?;
    progress(&format!("  idle: {} MB", idle_bytes / 1_000_000));

    let mut steps = Vec::new();
    let mut made = 0;
    for &sets in &plan.steps {
        let before = Requests::read(&client).await?;
        let (cpu, start) = (manager.cpu_time()?, Instant::now());
        make_sets(&client, "set", made..sets, PODS).await?;
        let polls = complete(&client, &[("probe", 1, 1), ("set", sets, PODS)]).await?;
        let wall = start.elapsed();
        // What is written behind the last pod (events) belongs to the step as well.
        let resident_bytes = at_rest(&mut manager).await?;
        let cpu = manager.cpu_time()?.saturating_sub(cpu);
        let created = u64::try_from(sets - made)?;
        let requests = Requests::read(&client)
            .await?
            .since(&before)
            .without("POST", "replicasets", created)
            .without("LIST", "pods", polls.pods)
            .without("LIST", "replicasets", polls.sets);
        let step = Step::new(sets, PODS, wall, cpu, resident_bytes, &requests);
        progress(&format!("  {step}"));
        steps.push(step);
        made = sets;
    }

    drop(manager);
    let mut manager = Manager::start(subject, plane, &subject.to_string(), &ARGS)?;
    // A set made after the restart is served once the lists are in.
    make_sets(&client, "after", 0..1, 1).await?;
    complete(&client, &[("after", 1, 1)]).await?;
    let restarted_bytes = at_rest(&mut manager).await?;
    let restart_cpu = manager.cpu_time()?;
    progress(&format!("  restarted: {} MB, CPU {:.2} s", restarted_bytes / 1_000_000, restart_cpu.as_secs_f64()));
    Ok(Figures { idle_bytes, steps, restarted_bytes, restart_cpu_seconds: restart_cpu.as_secs_f64() })
}

/// Memory once the manager has stopped working: the lowest CPU use, then the median of readings.
async fn at_rest(manager: &mut Manager) -> Result<u64> {
    let start = Instant::now();
    let mut quiet_since = (Instant::now(), manager.cpu_time()?);
    while quiet_since.0.elapsed() < REST {
        ensure!(start.elapsed() < LIMIT, "{} did not come to rest in {} s", manager.name(), LIMIT.as_secs());
        manager.must_run()?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let cpu = manager.cpu_time()?;
        // Upkeep (timers, garbage collection) is rest; work is not.
        let spent = cpu.saturating_sub(quiet_since.1);
        if spent > quiet_since.0.elapsed().mul_f64(0.05) + Duration::from_millis(50) {
            quiet_since = (Instant::now(), cpu);
        }
    }
    let mut readings = Vec::new();
    for _ in 0..9 {
        readings.push(manager.rss_bytes()?);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    readings.sort_unstable();
    Ok(readings[readings.len() / 2])
}

async fn make_namespace(client: &Client) -> Result<()> {
    let mut namespace = corev1::Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    let namespaces: Api<corev1::Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.context("cannot make the namespace")?;
    Ok(())
}

async fn make_sets(client: &Client, prefix: &str, range: std::ops::Range<usize>, replicas: usize) -> Result<()> {
    let sets: Api<appsv1::ReplicaSet> = Api::namespaced(client.clone(), NAMESPACE);
    stream::iter(range.map(anyhow::Ok))
        .try_for_each_concurrent(8, |index| {
            let sets = sets.clone();
            async move {
                let name = format!("{prefix}-{index}");
                let set = replica_set(prefix, &name, replicas)?;
                sets.create(&PostParams::default(), &set).await.with_context(|| format!("cannot make {name}"))?;
                Ok(())
            }
        })
        .await
}

fn replica_set(prefix: &str, name: &str, replicas: usize) -> Result<appsv1::ReplicaSet> {
    let set = json!({
        "metadata": { "name": name, "labels": { "group": prefix } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name, "group": prefix } },
                "spec": { "containers": [{
                    "name": "main",
                    "image": "example/main:1",
                    "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
                }] },
            },
        },
    });
    serde_json::from_value(set).context("a replica set must be built from its JSON")
}

/// Requests that waiting itself made.
#[derive(Default)]
struct Polls {
    pods: u64,
    sets: u64,
}

/// Waits until each group has its pods and its sets say so.
///
/// Pods are counted by a page of one and what remains behind it: cheap for the API server, whose
/// cores the manager shares.
async fn complete(client: &Client, groups: &[(&str, usize, usize)]) -> Result<Polls> {
    let pods: Api<corev1::Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let sets: Api<appsv1::ReplicaSet> = Api::namespaced(client.clone(), NAMESPACE);
    let mut polls = Polls::default();
    let total: usize = groups.iter().map(|(_, sets, pods)| sets * pods).sum();
    wait::eventually_within("the pods to be made", LIMIT, async || {
        polls.pods += 1;
        let page = pods.list_metadata(&ListParams::default().limit(1)).await?;
        let behind = usize::try_from(page.metadata.remaining_item_count.unwrap_or(0))?;
        let there = page.items.len() + behind;
        ensure!(there >= total, "{there} of {total} are there");
        Ok(())
    })
    .await?;
    for &(group, expected, replicas) in groups {
        wait::eventually_within("the statuses to be written", LIMIT, async || {
            polls.sets += 1;
            let list = sets.list(&ListParams::default().labels(&format!("group={group}"))).await?;
            let replicas = i32::try_from(replicas)?;
            let done = |set: &&appsv1::ReplicaSet| set.status.as_ref().is_some_and(|it| it.replicas == replicas);
            let (done, behind) = (list.iter().filter(done).count(), list.iter().find(|set| !done(set)));
            let behind = behind.map(ResourceExt::name_any);
            ensure!(done == expected, "{done} of {expected} are written; {behind:?} is not");
            Ok(())
        })
        .await?;
    }
    Ok(polls)
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn a_plan_must_measure_something() {
        Plan::default().check().expect("the default plan is sound");
        for steps in [vec![], vec![0], vec![5, 5], vec![400, 100]] {
            assert!(Plan { steps, ..Plan::default() }.check().is_err());
        }
        assert!(Plan { runs: 0, ..Plan::default() }.check().is_err());
    }
}
