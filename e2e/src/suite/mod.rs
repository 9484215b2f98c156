//! Running scenarios and reporting what became of them.
//!
//! Scenarios run on lanes. A lane is a control plane with upstream's namespace, garbage and quota controllers beside
//! it. The first lane runs, with nothing else on the machine, the scenarios that share a manager, several at a time
//! and each in a namespace of its own, and those that must be undisturbed. Then all lanes take turns with the
//! scenarios that start their own managers: of these a lane runs one at a time, because a manager acts in every
//! namespace.
//!
//! The peer does not run again what it has passed with the same sources: see [`crate::peer_verified`].
//!
//! On a sandbox ([`On::Sandbox`]) the same scenarios show that it serves as the real one does. It collects garbage
//! itself; `NOT_ON_A_SANDBOX` lists what it lacks.

mod lane;

use std::cell::RefCell;
use std::collections::VecDeque;

use anyhow::Result;

use self::lane::Lane;
use crate::peer_verified::{self, PeerVerified};
use crate::scenario::{Runs, Scenario, Selected};
use crate::subject::Subject;

/// Upstream's controllers that scenarios need.
pub(crate) const HELPERS: [&str; 3] =
    ["namespace-controller", "garbage-collector-controller", "resourcequota-controller"];

/// Scenarios that a sandbox cannot show, each with the reason.
const NOT_ON_A_SANDBOX: [(&str, &str); 6] = [
    ("api/", "the table of API scenarios is played in the sandbox's own tests"),
    ("host/", "about the host and its users, not about an API"),
    ("hello/labels_namespaces", "counts requests by the API server's metrics"),
    ("replicaset/quota", "quotas are stored and not enforced"),
    ("deployment/may_not_make_a_set", "every user may do everything"),
    ("deployment/may_not_make_a_pod", "every user may do everything"),
];

/// What the scenarios run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Upstream's API server with etcd, its scheduler, and kwok's nodes.
    ControlPlane,
    /// The sandbox of our binary.
    Sandbox,
}

/// Which of the selected scenarios the peer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerRuns {
    /// Those whose sources or pinned versions are not the ones that it has passed.
    Changed,
    /// All, and the record is written anew for those that it passes.
    All,
}

/// How scenarios are run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What they run on.
    pub on: On,
    /// How many control planes there are at most.
    pub jobs: usize,
    /// Which ones the peer runs.
    pub peer: PeerRuns,
}

/// How a run went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Scenarios that held.
    pub passed: usize,
    /// Scenarios that did not, and managers that failed beside them.
    pub failed: usize,
    /// What the peer has passed.
    peer_passed: Vec<&'static str>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.peer_passed.extend(other.peer_passed);
    }
}

/// Runs scenarios and hands `report` each line worth reading, as it comes.
///
/// # Errors
///
/// If a control plane or a helper cannot be started or dies; a scenario that fails is counted, not an error.
pub async fn run(plan: Plan, selected: &[Selected], report: &dyn Fn(&str)) -> Result<Outcome> {
    let selected = possible(plan.on, selected, report);
    let mut verified = PeerVerified::read()?;
    // The record is about the real control plane.
    let selected = match (plan.on, plan.peer) {
        (On::ControlPlane, PeerRuns::Changed) => not_verified(&verified, selected, report)?,
        (On::Sandbox, _) | (On::ControlPlane, PeerRuns::All) => selected,
    };
    // The peer is needed in any case: it helps.
    Subject::Peer.program()?;
    if plan.on == On::Sandbox || selected.iter().any(|it| it.subject == Subject::Ours) {
        Subject::Ours.program()?;
    }
    let outcome = on_lanes(plan, &Work::of(&selected), report).await?;
    if (plan.on, plan.peer) == (On::ControlPlane, PeerRuns::All) {
        for it in selected.iter().filter(|it| outcome.peer_passed.contains(&it.scenario.name)) {
            verified.insert(it.scenario, peer_verified::digest(it.scenario)?);
        }
        verified.retain(is_of_the_peer);
        verified.write()?;
    }
    Ok(outcome)
}

fn is_of_the_peer(name: &str) -> bool {
    crate::scenarios::all().any(|it| it.name == name && it.subjects.contains(&Subject::Peer))
}

/// Leaves out what cannot be shown there, and says so.
fn possible(on: On, selected: &[Selected], report: &dyn Fn(&str)) -> Vec<Selected> {
    let mut possible = selected.to_vec();
    if on == On::Sandbox {
        possible.retain(|it| match NOT_ON_A_SANDBOX.iter().find(|(name, _)| it.scenario.name.starts_with(name)) {
            Some((_, why)) => {
                report(&format!("left out {}: {why}", it.name()));
                false
            }
            None => true,
        });
    }
    possible
}

/// Leaves out what the peer has passed as it is now, and says so.
fn not_verified(record: &PeerVerified, selected: Vec<Selected>, report: &dyn Fn(&str)) -> Result<Vec<Selected>> {
    let mut left = Vec::new();
    for it in selected {
        let digest = peer_verified::digest(it.scenario)?;
        if it.subject == Subject::Peer && record.holds(it.scenario, &digest) {
            report(&format!("verified {} with {digest}", it.name()));
        } else {
            left.push(it);
        }
    }
    Ok(left)
}

/// Scenarios by how they run.
#[derive(Default)]
struct Work {
    /// Those that share a manager.
    shared: Vec<Shared>,
    /// Those that run while nothing else does.
    exclusive: Vec<Selected>,
    /// Those that run beside each other on several lanes.
    apart: Vec<Selected>,
}

/// Scenarios that share a manager.
struct Shared {
    subject: Subject,
    controllers: &'static str,
    scenarios: Vec<Selected>,
}

impl Work {
    fn of(selected: &[Selected]) -> Self {
        let mut work = Self::default();
        for &it in selected {
            let Scenario { runs, controllers, .. } = *it.scenario;
            match runs {
                Runs::Exclusively => work.exclusive.push(it),
                Runs::WithOwnManagers => work.apart.push(it),
                Runs::OnSharedManager => {
                    let is_same =
                        |shared: &&mut Shared| (shared.subject, shared.controllers) == (it.subject, controllers);
                    match work.shared.iter_mut().find(is_same) {
                        Some(shared) => shared.scenarios.push(it),
                        None => work.shared.push(Shared { subject: it.subject, controllers, scenarios: vec![it] }),
                    }
                }
            }
        }
        work.shared.sort_by_key(|shared| (shared.subject, shared.controllers));
        work
    }
}

async fn on_lanes(plan: Plan, work: &Work, report: &dyn Fn(&str)) -> Result<Outcome> {
    let mut first = None;
    if !work.shared.is_empty() || !work.exclusive.is_empty() {
        let mut lane = Lane::start(plan.on, 1, report).await?;
        lane.run_undisturbed(work).await;
        first = Some(lane);
    }
    let queue = RefCell::new(work.apart.iter().copied().collect::<VecDeque<_>>());
    let lanes = plan.jobs.min(work.apart.len()).max(usize::from(first.is_some()));
    let lanes = (1..=lanes).map(|number| {
        let (started, queue) = (first.take(), &queue);
        async move {
            let mut lane = match started {
                Some(lane) => lane,
                None => Lane::start(plan.on, number, report).await?,
            };
            lane.run_queue(queue).await;
            lane.end()
        }
    });
    let mut outcome = Outcome::default();
    for of_lane in futures::future::try_join_all(lanes).await? {
        outcome.add(of_lane);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::Work;
    use crate::scenario::{Selected, select};
    use crate::scenarios;

    #[test]
    fn scenarios_share_a_manager_only_with_the_same_subject_and_controllers() {
        let work = Work::of(&select(scenarios::all(), &[]));
        let managers: Vec<String> =
            work.shared.iter().map(|shared| format!("{} {}", shared.subject, shared.controllers)).collect();
        let expected =
            ["ours deployment,replicaset", "ours replicaset", "peer deployment,replicaset", "peer replicaset"];
        assert_eq!(managers, expected);
        for shared in &work.shared {
            assert!(shared.scenarios.iter().all(|it| it.scenario.controllers == shared.controllers));
        }
    }

    #[test]
    fn every_scenario_runs_once_for_each_of_its_subjects() {
        let selected = select(scenarios::all(), &[]);
        let work = Work::of(&selected);
        let shared = work.shared.iter().flat_map(|shared| &shared.scenarios);
        let mut planned: Vec<String> = shared.chain(&work.exclusive).chain(&work.apart).map(|it| it.name()).collect();
        let mut names: Vec<String> = selected.into_iter().map(Selected::name).collect();
        planned.sort_unstable();
        names.sort_unstable();
        assert_eq!(planned, names);
    }
}
