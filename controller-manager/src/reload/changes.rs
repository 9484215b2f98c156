//! Actions that a change of settings asks for.

use std::collections::BTreeSet;

use kcm_config::{Effective, Row};

/// A part of the settings that is applied while the manager runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// The verbosity of logs.
    Logs,
    /// The rate limits of requests.
    Limits,
    /// The set of controllers that run.
    Controllers,
    /// The numbers of workers of loops: every setting of a controller that says that it is reloaded.
    Workers,
}

/// The settings of the manager itself that are applied while it runs. Settings of controllers say so in their rows. All
/// other settings take effect at the next start.
const LIVE: [(&str, Action); 5] = [
    ("controllers", Action::Controllers),
    ("kube-api-burst", Action::Limits),
    ("kube-api-qps", Action::Limits),
    ("v", Action::Logs),
    ("vmodule", Action::Logs),
];

fn action(row: &Row) -> Option<Action> {
    let of_manager = LIVE.iter().find(|(name, _)| *name == row.name).map(|(_, action)| *action);
    of_manager.or(row.is_reloaded.then_some(Action::Workers))
}

/// Returns the parts of the settings that differ between the settings `in_use` and `new` ones, and are applied now.
pub(super) fn actions(in_use: &Effective, new: &Effective) -> BTreeSet<Action> {
    let changed = new.rows().iter().filter(|row| in_use.value(row.name) != new.value(row.name));
    changed.filter_map(action).collect()
}

/// Returns the settings whose `new` values are not used before the next start, by their names for users, sorted.
/// `is_outdated` decides for each setting that is not applied while the manager runs.
pub(super) fn need_restart(new: &Effective, is_outdated: impl Fn(&Row) -> bool) -> Vec<String> {
    let of_start = new.rows().iter().filter(|row| action(row).is_none());
    let mut labels: Vec<String> = of_start.filter(|row| is_outdated(row)).map(Row::label).collect();
    labels.sort();
    labels
}

#[cfg(test)]
mod tests {
    use kcm_config::{Initial, Loaded, Sources, Table, generic};

    use super::*;

    const SYNCS: Row = Row::new("concurrent-syncs", "Test", Initial::Int32(5)).help("How many.").reloaded();

    fn settings(arguments: &[&str]) -> Effective {
        let table = Table::new(generic::rows().chain([SYNCS])).expect("the rows make a table");
        match table.load(&Sources::default().arguments(arguments.iter().copied())) {
            Ok(Loaded::Settings(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    /// Compares new settings with the settings `in_use`, and with the settings of the `start` what needs a restart.
    fn changes(start: &Effective, in_use: &Effective, new: &Effective) -> (BTreeSet<Action>, Vec<String>) {
        (actions(in_use, new), need_restart(new, |row| start.value(row.name) != new.value(row.name)))
    }

    #[test]
    fn a_change_is_applied_or_needs_a_restart() {
        let cases: [(&[&str], &[Action], &[&str]); 10] = [
            (&[], &[], &[]),
            (&["-v=4"], &[Action::Logs], &[]),
            (&["--vmodule=worker=4"], &[Action::Logs], &[]),
            (&["--kube-api-qps=50"], &[Action::Limits], &[]),
            (&["--kube-api-burst=50", "-v=4"], &[Action::Logs, Action::Limits], &[]),
            (&["--controllers=*,-deployment"], &[Action::Controllers], &[]),
            (&["--concurrent-syncs=9"], &[Action::Workers], &[]),
            (&["--min-resync-period=1h"], &[], &["--min-resync-period"]),
            (&["--logging-format=json", "--leader-elect=false"], &[], &["--leader-elect", "--logging-format"]),
            // Given, and no other than before.
            (&["--kube-api-qps=20", "--min-resync-period=12h"], &[], &[]),
        ];
        let old = settings(&[]);
        for (arguments, actions, need_restart) in cases {
            let expected = (actions.iter().copied().collect(), need_restart.iter().map(ToString::to_string).collect());
            assert_eq!(changes(&old, &old, &settings(arguments)), expected, "{arguments:?}");
        }
    }

    #[test]
    fn what_needs_a_restart_is_compared_with_the_start_and_the_rest_with_what_is_in_use() {
        let (start, in_use) = (settings(&[]), settings(&["-v=4", "--min-resync-period=1h"]));
        let back = changes(&start, &in_use, &settings(&[]));
        assert_eq!(back, ([Action::Logs].into(), Vec::new()));
        let same = changes(&start, &in_use, &in_use);
        assert_eq!(same, (BTreeSet::new(), vec!["--min-resync-period".to_owned()]));
    }

    #[test]
    fn every_setting_that_is_applied_is_one() {
        let settings = settings(&[]);
        for (name, _) in LIVE {
            assert!(settings.value(name).is_some(), "{name}");
        }
    }
}
