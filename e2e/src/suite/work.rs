//! Scenarios sorted by how they run.

use crate::scenario::{Runs, Scenario, Selected};
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

#[cfg(test)]
mod tests {
    use super::Work;
    use crate::scenario::{Selected, select};
    use crate::scenarios;
    use crate::subject::Subject;

    #[test]
    fn scenarios_share_a_manager_only_with_the_same_subject_and_controllers() {
        let work = Work::of(&select(scenarios::all(), &[]));
        let mut managers: Vec<_> = work.shared.iter().map(|shared| (shared.subject, shared.controllers)).collect();
        assert!(managers.contains(&(Subject::Ours, "deployment,replicaset")));
        assert!(managers.contains(&(Subject::Peer, "replicaset")));
        let count = managers.len();
        managers.dedup();
        assert_eq!(managers.len(), count, "scenarios of one subject and of the same controllers share one manager");
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
