//! The oracles that compare a run with the reference run: O3 and O7.

use std::collections::BTreeMap;

use kcm_sandbox_apiserver::Resource;

use crate::conductor::Run;
use crate::history::History;
use crate::schedule::{Perturbation, Schedule, Settings, What};
use crate::state::normal_form;
use crate::violation::Violation;

/// The reference run, as far as others are compared with it.
pub(crate) struct Reference {
    created: BTreeMap<Resource, u32>,
    end: Vec<String>,
}

impl Reference {
    pub(crate) fn of(run: &Run) -> Self {
        Self { created: creations(&run.history), end: normal_form(&run.history.end()) }
    }

    /// Compares a run of a schedule. An action of the user, a failed pod, other settings and an admission webhook change what
    /// must be created, and how the run ends.
    pub(crate) fn compare(&self, schedule: &Schedule, history: &History) -> Option<Violation> {
        let is_other = |one: &Perturbation| match one.what {
            What::Act(_) | What::Pod(_) | What::Mutate => true,
            What::Kill { settings, .. } => settings == Settings::Other,
            What::KillInFlight(_)
            | What::Pause(_)
            | What::Outage(_)
            | What::Clock(_)
            | What::LoseResponse
            | What::HoldRequest(_)
            | What::HoldResponse(_)
            | What::Hold(_)
            | What::Relist(_)
            | What::Fail { .. }
            | What::Order(_) => false,
        };
        if schedule.0.iter().any(is_other) {
            return None;
        }
        self.more_creations(history).or_else(|| self.another_end(history))
    }

    /// O7: more creations than the reference run and its kills explain.
    fn more_creations(&self, history: &History) -> Option<Violation> {
        creations(history).into_iter().find_map(|(resource, count)| {
            let allowed = self.created.get(&resource).copied().unwrap_or_default() + history.kills;
            let detail = format!("{count} instead of {allowed}");
            (count > allowed)
                .then(|| Violation::new("O7", format!("too many {} are created", resource.plural)).detail(detail))
        })
    }

    /// O3: an end state that differs from the reference run.
    fn another_end(&self, history: &History) -> Option<Violation> {
        let end = normal_form(&history.end());
        if end == self.end {
            return None;
        }
        let only = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|line| !those.contains(line)).cloned().collect()
        };
        let (more, less) = (only(&end, &self.end), only(&self.end, &end));
        let detail = format!("only here: {}; only there: {}", more.join("\n"), less.join("\n"));
        Some(Violation::new("O3", "the run ends in another state than the reference run").detail(detail))
    }
}

fn creations(history: &History) -> BTreeMap<Resource, u32> {
    let mut created = BTreeMap::new();
    for change in history.changes.iter().filter(|change| change.creates()) {
        *created.entry(change.resource.clone()).or_default() += 1;
    }
    created
}
