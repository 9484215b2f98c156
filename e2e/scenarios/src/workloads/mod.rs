//! Workloads while a person works, under the peer and under ours, with a comparison of every field that follows.

mod cron_jobs;
mod daemon_sets;
mod finished_jobs;
mod jobs;
mod pods;
mod stateful_sets;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;

use super::alone::Alone;
use super::recorded::{Record, Script, are_equal, play_rounds, prepare};

kcm_e2e_harness::scenarios! {
    Setup::of("job,cronjob,ttl-after-finished,statefulset,daemonset").ours().exclusively() => {
        // A change has had its effect when nothing has changed for a while: a busy machine would end it too early.
        "workload/acts_as_recorded": act_as_recorded,
    }
    Setup::of("podgc").ours().with_own_managers() => {
        "pod-garbage-collector/acts_as_recorded": pods::acts_as_recorded,
    }
}

/// Each is of other kinds, so that they take no longer together than one of them alone.
const SCRIPTS: [&Script; 5] =
    [&jobs::SCRIPT, &cron_jobs::SCRIPT, &finished_jobs::SCRIPT, &stateful_sets::SCRIPT, &daemon_sets::SCRIPT];

/// Ours does after each round of changes what the peer did.
async fn act_as_recorded(case: Case) -> Result<()> {
    let (theirs, ours) = tokio::try_join!(under(&case, Subject::Peer), under(&case, case.subject()))?;
    let rounds: Vec<String> = (1..theirs.len()).map(|round| format!("round {round}")).collect();
    are_equal(&rounds, &theirs, &ours)
}

async fn under(case: &Case, subject: Subject) -> Result<Vec<Record>> {
    let alone = Alone::start_with(case, subject).await?;
    try_join_all(SCRIPTS.iter().map(|script| prepare(&alone.plane, script))).await?;
    play_rounds(&alone.plane, &SCRIPTS).await.with_context(|| format!("{subject} plays"))
}

#[cfg(test)]
mod tests {
    use super::{SCRIPTS, pods};

    #[test]
    fn each_controller_sees_twenty_changes() {
        for script in SCRIPTS.into_iter().chain([&pods::SCRIPT]) {
            let changes = script.rounds.iter().map(|round| round.len()).sum::<usize>();
            assert!(changes >= 20, "{} has {changes}", script.namespace);
        }
    }
}
