//! Running scenarios and reporting what became of them.
//!
//! Scenarios run on lanes. A lane is a control plane with controllers for namespaces, garbage, quotas and service
//! accounts beside it. Our managers have the roles that Kubernetes binds to them and to their service accounts, and a
//! request that authorization refuses fails the lane. The first lane runs, with nothing else on the machine, the
//! scenarios that share a manager, several at a time and each in a namespace of its own, and those that must be
//! undisturbed. Then all lanes take turns with the scenarios that start their own managers: of these a lane runs one at
//! a time, because a manager acts in every namespace.
//!
//! The peer does not run again what it has passed with the same sources: see `peer_verified`.
//!
//! On a sandbox ([`On::Sandbox`]) the same scenarios show that it serves as the real one does; `NOT_ON_A_SANDBOX` lists
//! what it lacks.

mod lane;
mod plan;
mod work;

use std::cell::RefCell;
use std::collections::VecDeque;

use anyhow::Result;

use self::lane::Lane;
pub use self::plan::{On, Outcome, PeerRuns, Plan};
use self::work::Work;
use crate::peer_verified::{self, PeerVerified};
use crate::scenario::{Selected, all};
use crate::subject::Subject;

/// Scenarios that a sandbox cannot show, by a part of their names, each with the reason.
const NOT_ON_A_SANDBOX: [(&str, &str); 14] = [
    ("/acts_as_recorded", WITH_UPSTREAM),
    ("handed_over", WITH_UPSTREAM),
    ("api/", "the table of API scenarios is played in the sandbox's own tests"),
    ("envtest/", "about the binaries of a control plane"),
    (
        "garbage-collector/collects_kinds_that_come_and_go",
        "the objects of a definition that is deleted go without an event there",
    ),
    ("resourcequota/counts_custom_objects", "quotas are stored and not enforced"),
    ("host/", "about the host and its users, not about an API"),
    ("serving/", "it reviews neither tokens nor access"),
    ("serviceaccount-token/tokens_are_accepted", "its only user may do everything, and it reviews no tokens"),
    ("identities/", "it issues no tokens of service accounts, and its only user may do everything"),
    ("deploy/has_the_rights", "it issues no tokens of service accounts, and its only user may do everything"),
    ("hello/labels_namespaces", "counts requests by the API server's metrics"),
    ("deployment/rolls_through", "its API server and its storage are one process"),
    ("website/", "every user may do everything"),
];

const WITH_UPSTREAM: &str = "upstream's manager is compared, and replaced, on a control plane";

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
        (On::Sandbox | On::OlderControlPlane, _) | (On::ControlPlane, PeerRuns::All) => selected,
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
    all().into_iter().any(|it| it.name == name && it.is_about(Subject::Peer))
}

/// Leaves out what cannot be shown there, and says so.
fn possible(on: On, selected: &[Selected], report: &dyn Fn(&str)) -> Vec<Selected> {
    let mut possible = selected.to_vec();
    if on == On::Sandbox {
        possible.retain(|it| match NOT_ON_A_SANDBOX.iter().find(|(part, _)| it.scenario.name.contains(part)) {
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
