//! Scenarios sorted by how they run.

use crate::scenario::{Runs, Selected, Setup};
use crate::subject::Subject;

/// Scenarios by how they run.
#[derive(Default)]
pub(super) struct Work {
    /// Those that share a manager.
    pub(super) shared: Vec<Shared>,
    /// Those that run while nothing else does.
    pub(super) exclusive: Vec<Selected>,
    /// Those that run beside each other on several lanes.
    pub(super) apart: Vec<Selected>,
}

/// Scenarios that share a manager.
pub(super) struct Shared {
    pub(super) subject: Subject,
    pub(super) controllers: &'static str,
    pub(super) scenarios: Vec<Selected>,
}

impl Work {
    pub(super) fn of(selected: &[Selected]) -> Self {
        let mut work = Self::default();
        for &it in selected {
            let Setup { runs, controllers, .. } = it.scenario.setup;
            match runs {
                Runs::Exclusively => work.exclusive.push(it),
                Runs::WithOwnManagers | Runs::OnOwnPlanes => work.apart.push(it),
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

#[cfg(test)]
mod tests {
    use super::Work;
    use crate::scenario::{Scenario, Selected, Setup, select};
    use crate::subject::Subject;

    const fn scenario(name: &'static str, setup: Setup) -> Scenario {
        Scenario { name, setup, source: file!(), run: |_| Box::pin(async { Ok(()) }) }
    }

    const DEPLOYMENTS: Setup = Setup::of("deployment,replicaset");
    static SCENARIOS: [Scenario; 6] = [
        scenario("deployment/is_edited", DEPLOYMENTS),
        scenario("replicaset/adopts", Setup::of("replicaset")),
        scenario("deployment/is_watched", DEPLOYMENTS),
        scenario("kubectl/applies", DEPLOYMENTS.ours()),
        scenario("deployment/takes_over", DEPLOYMENTS.ours().with_own_managers()),
        scenario("deployment/acts_as_recorded", DEPLOYMENTS.ours().exclusively()),
    ];

    #[test]
    fn scenarios_share_a_manager_only_with_the_same_subject_and_controllers() {
        let work = Work::of(&select(&SCENARIOS, &[]));
        let managers: Vec<_> = work.shared.iter().map(|it| (it.subject, it.controllers, it.scenarios.len())).collect();
        assert_eq!(
            managers,
            [
                (Subject::Ours, "deployment,replicaset", 3),
                (Subject::Ours, "replicaset", 1),
                (Subject::Peer, "deployment,replicaset", 2),
                (Subject::Peer, "replicaset", 1),
            ]
        );
    }

    #[test]
    fn every_scenario_runs_once_for_each_of_its_subjects() {
        let selected = select(&SCENARIOS, &[]);
        let work = Work::of(&selected);
        let shared = work.shared.iter().flat_map(|shared| &shared.scenarios);
        let mut planned: Vec<String> = shared.chain(&work.exclusive).chain(&work.apart).map(|it| it.name()).collect();
        let mut names: Vec<String> = selected.into_iter().map(Selected::name).collect();
        planned.sort_unstable();
        names.sort_unstable();
        assert_eq!(planned, names);
        assert_eq!((work.exclusive.len(), work.apart.len()), (1, 1));
    }
}
