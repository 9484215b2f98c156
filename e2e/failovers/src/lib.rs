//! Failovers under load: leaders that stop acting in every way, and how soon their successors act.
//!
//! Two managers compete for one lease while a deployment is rolled again and again. The audit log of the API server
//! records every write of both and the history of the lease: from it follow when a successor has acted, and whether two
//! ever wrote.

#![allow(clippy::must_use_candidate, reason = "the value of a getter is not ignored by accident")]

mod audit;
mod fault;
mod managers;
mod proxy;
mod report;
mod surplus;
mod work;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use kcm_e2e_harness::control_plane::{Component, ControlPlane, Options};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually_within;
use kcm_e2e_harness::{clock, nodes};

pub use fault::Fault;
use managers::Managers;
pub use report::Report;
use surplus::History;

/// Which two managers compete for the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pair {
    /// Two of ours.
    Ours,
    /// One of ours and one of upstream's.
    InTurns,
    /// Two of upstream's.
    Peer,
}

impl Pair {
    const fn subjects(self) -> [Subject; 2] {
        match self {
            Self::Ours => [Subject::Ours, Subject::Ours],
            Self::InTurns => [Subject::Ours, Subject::Peer],
            Self::Peer => [Subject::Peer, Subject::Peer],
        }
    }
}

/// What a run does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The failovers, in their order.
    pub faults: Vec<Fault>,
    /// The pods of the deployment that is rolled all the time.
    pub pods: i32,
    /// `true` if an indexed Job is created at each failover.
    pub jobs: bool,
    /// The duration of the lease; renew deadline and retry period follow from it as upstream's defaults do from 15 s.
    pub lease: Duration,
}

/// One failover.
#[derive(Debug, Clone)]
pub struct Failover {
    /// How the leader stopped acting.
    pub fault: Fault,
    /// Whose manager led before.
    pub from: Subject,
    /// Whose manager led after.
    pub to: Subject,
    /// From the fault until the successor held the lease; where the API server was stopped, from when it goes on.
    pub led: Duration,
    /// From then until the successor had acted on a change that was made after it.
    pub acted: Duration,
}

/// How the failovers of one pair went.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The managers.
    pub pair: Pair,
    /// The failovers, in their order.
    pub failovers: Vec<Failover>,
    /// How many writes of managers the API server accepted.
    pub writes: usize,
    /// The writes of managers that did not hold the lease, of ours and of upstream's.
    pub foreign: Vec<(Subject, String)>,
    /// Pods that were created beyond the desired count of their replica sets.
    pub surplus: Vec<String>,
    /// Indexes of Jobs that ran more than once.
    pub repeated: Vec<String>,
}

/// How long a successor, a rollout or an end may take.
const LIMIT: Duration = Duration::from_mins(2);

/// How much longer than the lease a process is stopped or cut off.
const BEYOND_LEASE: Duration = Duration::from_secs(5);

/// How long a new standby has to fill its caches.
const SETTLE: Duration = Duration::from_secs(4);

/// Lets the managers of a pair take turns as the plan says.
///
/// # Errors
///
/// If the control plane or a manager cannot be started, or a successor does not act in time.
pub async fn run(pair: Pair, plan: &Plan, progress: &dyn Fn(&str)) -> Result<Outcome> {
    let folder = tempfile::tempdir().context("cannot make a folder for the audit log")?;
    let (policy, log) = (folder.path().join("policy.json"), folder.path().join("audit.log"));
    std::fs::write(&policy, audit::policy()).context("cannot write the audit policy")?;
    let api_server_args = vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
        "--audit-log-mode=blocking".to_owned(),
    ];
    let plane = ControlPlane::start(Options { kwok: true, api_server_args, ..Options::default() }).await?;
    nodes::create(&plane.client(), work::NODES, 1).await?;
    let mut managers = Managers::start(&plane, pair, plan, log).await?;
    work::create(&plane.client(), plan.pods).await?;
    let mut failovers = Vec::new();
    let client = plane.client();
    let rolling = work::roll(&client);
    let history = History::new(client.clone());
    let recording = history.record();
    let failing = async {
        for (number, fault) in plan.faults.iter().enumerate() {
            let failover = fail_over(&plane, &mut managers, *fault, number, plan).await;
            let failover = failover.with_context(|| format!("failover {} by {fault}", number + 1))?;
            let Failover { from, to, led, acted, .. } = &failover;
            progress(&format!("{fault}: {from} → {to}, lease after {led:.2?}, acted after {acted:.2?}"));
            failovers.push(failover);
        }
        Ok(())
    };
    tokio::select! {
        ended = failing => ended,
        failed = rolling => failed.map(|never| match never {}),
        failed = recording => failed.context("cannot record the pods"),
    }?;
    let (surplus, repeated) = (history.surplus(), history.repeated());
    let writes = managers.writes()?;
    let history = audit::history(writes);
    let foreign: Vec<_> = audit::foreign(writes, &history).into_iter().cloned().collect();
    let all = audit::counts(writes).into_values().sum();
    let foreign = foreign.iter().map(|write| {
        let audit::Write { user, verb, resource, name, received, .. } = write;
        (managers.subject_of(user), format!("{received} {user} {verb} {resource} {name}"))
    });
    Ok(Outcome { pair, failovers, writes: all, foreign: foreign.collect(), surplus, repeated })
}

/// One failover; at its end both managers run again.
async fn fail_over(
    plane: &ControlPlane,
    managers: &mut Managers,
    fault: Fault,
    number: usize,
    plan: &Plan,
) -> Result<Failover> {
    let lease = plan.lease;
    managers.are_ready().await?;
    tokio::time::sleep(SETTLE).await;
    let leader = managers.leader()?;
    if fault == Fault::ServerFrozen {
        // Without an answer for so long, the leader has given up before the API server goes on.
        plane.pause(Component::ApiServer)?;
        tokio::time::sleep(lease + BEYOND_LEASE).await;
        plane.resume(Component::ApiServer)?;
    }
    if plan.jobs {
        // Its first pods are created as the leader ends.
        work::create_job(&plane.client(), number).await?;
    }
    let before = clock::now();
    managers.fail(leader, fault)?;
    let probe = work::create_probe(&plane.client(), number).await?;
    let (led_at, acted_at) = eventually_within("the successor to act", LIMIT, async || {
        let user = managers.user(1 - leader);
        let writes = managers.writes()?;
        let acted = writes.iter().find(|write| {
            write.user == user && write.resource == "replicasets" && write.name == probe && write.verb != "create"
        });
        let acted = acted.with_context(|| format!("{user} has not acted on {probe}"))?.answered;
        let history = audit::history(writes);
        let led = history.iter().rfind(|change| change.user.as_deref() == Some(&user));
        Ok((led.context("it acted without the lease")?.answered, acted))
    })
    .await?;
    if matches!(fault, Fault::Frozen | Fault::CutOff) {
        let over = clock::now().duration_since(before);
        let left = (lease + BEYOND_LEASE).saturating_sub(Duration::try_from(over).unwrap_or_default());
        tokio::time::sleep(left).await;
    }
    managers.recover(leader, fault).await?;
    let since = |at: Timestamp| Duration::try_from(at.duration_since(before)).unwrap_or_default();
    ensure!(acted_at.duration_since(before) > SignedDuration::ZERO, "the probe was acted on before the fault");
    let (from, to) = (managers.subject(leader), managers.subject(1 - leader));
    Ok(Failover { fault, from, to, led: since(led_at), acted: since(acted_at) })
}
