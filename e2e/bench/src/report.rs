//! The record of a benchmark. `pages` writes its pages.

use std::collections::BTreeMap;

use kcm_e2e_harness::subject::Subject;
use serde::{Deserialize, Serialize};

use super::figures::{Figure, Phase, Spread};
use super::micro::Micro;
use super::scenarios::SCENARIOS;
use super::testbed::as_f64;

/// Every run of every manager, as it is kept in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Record {
    pub(super) scenarios: BTreeMap<String, Played>,
    #[serde(default)]
    pub(super) micro: Option<Micro>,
}

/// A scenario, run by both managers on one machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Played {
    /// When, how often, what and on what.
    pub(super) measured: String,
    /// The phases of each run, by whose manager.
    runs: BTreeMap<String, Vec<Vec<Phase>>>,
}

/// The figures of both managers for one phase of a scenario.
pub(super) struct Row {
    pub(super) scenario: &'static str,
    pub(super) phase: String,
    pub(super) figure: Figure,
    pub(super) ours: Option<Spread>,
    pub(super) peer: Option<Spread>,
}

impl Row {
    /// Ours as a part of the peer's; `None` where the peer's is no more than a bound, or next to nothing.
    pub(super) fn ratio(&self) -> Option<f64> {
        let (ours, peer) = (self.ours?.median, self.peer?.median);
        let is_exact = self.figure != Figure::LongestWait;
        let is_there = self.figure.text(peer) != self.figure.text(0.0);
        (is_exact && is_there).then(|| ours / peer)
    }
}

impl Record {
    /// A record of what one step takes.
    pub(super) fn of_micro(micro: Micro) -> Self {
        Self { micro: Some(micro), ..Self::default() }
    }

    /// Adds one run.
    pub(super) fn add(&mut self, scenario: &str, measured: &str, subject: Subject, phases: Vec<Phase>) {
        let played = self.scenarios.entry(scenario.to_owned()).or_default();
        measured.clone_into(&mut played.measured);
        played.runs.entry(subject.to_string()).or_default().push(phases);
    }

    /// Replaces what a later record has too.
    pub fn renew(&mut self, later: Self) {
        self.scenarios.extend(later.scenarios);
        self.micro = later.micro.or_else(|| self.micro.take());
    }

    pub(super) fn spread(&self, scenario: &str, subject: &str, phase: &str, figure: Figure) -> Option<Spread> {
        let runs = self.scenarios.get(scenario)?.runs.get(subject)?;
        let phases = runs.iter().filter_map(|run| run.iter().find(|it| it.name == phase));
        Spread::of(phases.filter_map(|phase| phase.figures.get(&figure).copied()))
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for scenario in SCENARIOS {
            let Some(run) = self.scenarios.get(scenario.name).and_then(|it| it.runs.values().next()?.first()) else {
                continue;
            };
            for phase in run {
                for figure in Figure::ALL {
                    let spread = |subject| self.spread(scenario.name, subject, &phase.name, figure);
                    let (ours, peer) = (spread("ours"), spread("peer"));
                    if ours.is_some() || peer.is_some() {
                        rows.push(Row { scenario: scenario.name, phase: phase.name.clone(), figure, ours, peer });
                    }
                }
            }
        }
        rows
    }

    /// All figures as plain lines.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut place = String::new();
        for row in self.rows() {
            let here = format!("{}, {}", row.scenario, row.phase);
            if here != place {
                line(&mut text, &format!("\n{here}"));
                place = here;
            }
            let cell = |spread: Option<Spread>| spread.map_or("–".to_owned(), |it| row.figure.text(it.median));
            let ratio = row.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            line(
                &mut text,
                &format!("  {:<24}{:>12}{:>12}{ratio:>8}", row.figure.label(), cell(row.ours), cell(row.peer)),
            );
        }
        text.push_str(&self.micro.as_ref().map(Micro::table).unwrap_or_default());
        text
    }

    /// The medians of a phase's requests by kind, of ours and of the peer, where there are many.
    pub(super) fn requests(&self, scenario: &str, phase: &str) -> BTreeMap<&str, [f64; 2]> {
        const MANY: f64 = 50.0;
        let runs = |subject: Subject| {
            let runs = self.scenarios.get(scenario).and_then(|it| it.runs.get(&subject.to_string()));
            runs.into_iter().flatten().filter_map(|run| run.iter().find(|it| it.name == phase))
        };
        let median = |subject, kind: &str| {
            let counts = runs(subject).map(|it| it.requests.get(kind).map_or(0.0, |&count| as_f64(count)));
            Spread::of(counts).map_or(0.0, |it| it.median)
        };
        let kinds = Subject::ALL.iter().flat_map(|&subject| runs(subject)).flat_map(|it| it.requests.keys());
        let counts = kinds.map(|kind| (kind.as_str(), Subject::ALL.map(|subject| median(subject, kind))));
        counts.filter(|(_, counts)| counts.iter().any(|&count| count >= MANY)).collect()
    }
}

pub(super) fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, figures: &[(Figure, f64)]) -> Vec<Phase> {
        vec![Phase { name: name.to_owned(), figures: figures.iter().copied().collect(), ..Phase::default() }]
    }

    #[test]
    fn there_is_no_ratio_to_a_bound_or_to_nothing() {
        let row = |figure, ours, peer| {
            let spread = |value| Spread::of(std::iter::once(value));
            Row { scenario: "idle", phase: "idle".to_owned(), figure, ours: spread(ours), peer: spread(peer) }
        };
        assert_eq!(row(Figure::Cpu, 1.0, 2.0).ratio(), Some(0.5));
        assert_eq!(row(Figure::LongestWait, 1.0, 10.0).ratio(), None, "the peer's is a power of ten");
        assert_eq!(row(Figure::Received, 1e5, 3e3).ratio(), None, "0.0 MB");
    }

    #[test]
    fn a_later_record_renews_what_it_has_and_keeps_the_rest() {
        let of = |scenario, cpu| {
            let mut record = Record::default();
            record.add(scenario, "today", Subject::Ours, phase("made", &[(Figure::Cpu, cpu)]));
            record
        };
        let cpu = |record: &Record, scenario| record.spread(scenario, "ours", "made", Figure::Cpu).map(|it| it.median);
        let mut record = of("restart", 1.0);
        record.renew(of("replica-sets", 2.0));
        record.renew(of("replica-sets", 3.0));
        assert_eq!((cpu(&record, "restart"), cpu(&record, "replica-sets")), (Some(1.0), Some(3.0)));
    }
}
