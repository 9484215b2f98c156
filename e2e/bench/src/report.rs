//! The record of a benchmark, and its page.

use std::collections::BTreeMap;

use kcm_e2e_harness::subject::Subject;
use serde::{Deserialize, Serialize};

use super::bars::{Bar, Limit, bars};
use super::chart;
use super::figures::{Figure, Phase, Spread};
use super::micro::{self, Micro};
use super::scenarios::SCENARIOS;
use super::testbed::as_f64;

/// Every run of every manager, as it is kept in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Record {
    scenarios: BTreeMap<String, Played>,
    #[serde(default)]
    micro: Option<Micro>,
}

/// A scenario, run by both managers on one machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Played {
    /// When, how often, what and on what.
    measured: String,
    /// The phases of each run, by whose manager.
    runs: BTreeMap<String, Vec<Vec<Phase>>>,
}

/// The figures of both managers for one phase of a scenario.
struct Row {
    scenario: &'static str,
    phase: String,
    figure: Figure,
    ours: Option<Spread>,
    peer: Option<Spread>,
}

impl Row {
    /// Ours as a part of the peer's; `None` where the peer's is no more than a bound, or next to nothing.
    fn ratio(&self) -> Option<f64> {
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

    fn spread(&self, scenario: &str, subject: &str, phase: &str, figure: Figure) -> Option<Spread> {
        let runs = self.scenarios.get(scenario)?.runs.get(subject)?;
        let phases = runs.iter().filter_map(|run| run.iter().find(|it| it.name == phase));
        Spread::of(phases.filter_map(|phase| phase.figures.get(&figure).copied()))
    }

    fn rows(&self) -> Vec<Row> {
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

    /// The bars, and whether they were reached.
    fn bars(&self) -> String {
        let mut text =
            String::from("| scenario | figure | ours | peer | bar | |\n| --- | --- | --- | --- | --- | --- |\n");
        for bar in bars() {
            let spread = |subject| self.spread(bar.scenario, subject, bar.phase, bar.figure).map(|it| it.median);
            let (ours, peer) = (spread("ours"), spread("peer"));
            let of_phase = |phase: &str| self.spread(bar.scenario, "ours", phase, bar.figure).map(|it| it.median);
            let (Some(ours), Some(limit)) = (ours, bar.limit.value(peer, of_phase)) else {
                let Bar { scenario, phase, figure, .. } = bar;
                line(&mut text, &format!("| {scenario}, {phase} | {} | – | – | – | not measured |", figure.label()));
                continue;
            };
            let peer = peer.map_or("–".to_owned(), |peer| bar.figure.text(peer));
            let how = match bar.limit {
                Limit::Value(_) => bar.figure.text(limit),
                Limit::OfPeer(part) => format!("{part} of the peer's: {}", bar.figure.text(limit)),
                Limit::OfPhase(part, phase) => format!("{part} of ours, {phase}: {}", bar.figure.text(limit)),
                Limit::AbovePhase(more, phase) => {
                    format!("{} above ours, {phase}: {}", bar.figure.text(more), bar.figure.text(limit))
                }
            };
            let verdict = if ours <= limit { "reached" } else { "**missed**" };
            line(
                &mut text,
                &format!(
                    "| {}, {} | {} | {} | {peer} | {how} | {verdict} |",
                    bar.scenario,
                    bar.phase,
                    bar.figure.label(),
                    bar.figure.text(ours)
                ),
            );
        }
        text.push_str(&micro::bar(self.micro.as_ref()));
        text
    }

    /// The page, in Markdown, and the charts that it shows, by file name.
    pub fn page(&self) -> (String, BTreeMap<String, String>) {
        let mut page = String::from("# Benchmark\n\n");
        page.push_str(
            "Ours beside upstream's kube-controller-manager, with the same controllers and limits. Each run has a \
             control plane of its own with 50 simulated nodes, and the managers take turns. Figures are medians, with \
             the least and the most in brackets; less is better, except for changes per CPU second. The peer serves \
             its metrics over HTTPS meanwhile, ours serves nothing, and the peer's longest wait is a power of ten, the \
             bound of a bucket. The allocator's view (live, held beside it) is jemalloc's and the Go runtime's. Memory is \
             read after ten seconds of rest; Go collects by itself only every two minutes when idle, so the peer's may \
             include garbage. Requests are those of all clients: the scheduler, the simulated nodes, and the benchmark, \
             which waits by listing. Those of the manager become fewer where it falls behind, since changes merge while \
             they wait: read them beside the latency. `cargo xtask bench --full` \
             writes this page; with `--scenario` it renews a part, with `--micro` the last. Compare within a \
             scenario: each says on what machine it was played. Until caches are full is from the first line of a \
             manager's log to the last \"Caches are synced\"; the peer looks every 0.1 s.\n\n",
        );
        page.push_str("## Bars\n\n");
        page.push_str(&self.bars());
        let mut charts = BTreeMap::new();
        for (file, title, figure) in
            [("memory.svg", "Resident memory at rest", Figure::Resident), ("cpu.svg", "CPU time", Figure::Cpu)]
        {
            let bars = self.rows().into_iter().filter(|row| row.figure == figure).filter_map(|row| {
                let place = format!("{}, {}", row.scenario, row.phase);
                Some(chart::Pair { label: place, ours: row.ours?.median, peer: row.peer?.median })
            });
            let bars: Vec<chart::Pair> = bars.collect();
            if !bars.is_empty() {
                charts.insert(file.to_owned(), chart::bars(title, &bars, |value| figure.text(value)));
                line(&mut page, &format!("\n![{title}](benchmark/{file})"));
            }
        }
        self.write_scenarios(&mut page);
        page.push_str(&self.micro.as_ref().map(Micro::section).unwrap_or_default());
        (page, charts)
    }

    fn write_scenarios(&self, page: &mut String) {
        let rows = self.rows();
        for phases in rows.chunk_by(|one, next| one.scenario == next.scenario) {
            let name = phases[0].scenario;
            let about = SCENARIOS.iter().find(|it| it.name == name).map_or("", |it| it.about);
            let measured = self.scenarios.get(name).map_or("", |it| &it.measured);
            line(page, &format!("\n## {name}\n\nPlayed: {about}. Measured: {measured}."));
            for figures in phases.chunk_by(|one, next| one.phase == next.phase) {
                self.write_phase(page, name, &figures[0].phase, figures);
            }
        }
    }

    fn write_phase(&self, page: &mut String, scenario: &str, phase: &str, figures: &[Row]) {
        line(page, &format!("\n### {scenario}: {phase}\n\n| | ours | peer | ours/peer |\n| --- | --- | --- | --- |"));
        for row in figures {
            let cell = |spread: Option<Spread>| {
                spread.map_or("–".to_owned(), |it| {
                    let text = |value| row.figure.text(value);
                    format!("{} ({} to {})", text(it.median), text(it.least), text(it.most))
                })
            };
            let ratio = row.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            line(page, &format!("| {} | {} | {} | {ratio} |", row.figure.label(), cell(row.ours), cell(row.peer)));
        }
        let requests = self.requests(scenario, phase);
        if !requests.is_empty() {
            line(page, "\n| requests | ours | peer |\n| --- | --- | --- |");
        }
        for (kind, [ours, peer]) in requests {
            line(page, &format!("| {kind} | {ours} | {peer} |"));
        }
    }

    /// The medians of a phase's requests by kind, of ours and of the peer, where there are many.
    fn requests(&self, scenario: &str, phase: &str) -> BTreeMap<&str, [f64; 2]> {
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

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn phase(name: &str, figures: &[(Figure, f64)]) -> Vec<Phase> {
        vec![Phase { name: name.to_owned(), figures: figures.iter().copied().collect(), ..Phase::default() }]
    }

    fn record(ours: f64, peer: f64) -> Record {
        let mut record = Record::default();
        record.add("replica-sets", "today", Subject::Ours, phase("made", &[(Figure::Cpu, ours)]));
        record.add("replica-sets", "today", Subject::Peer, phase("made", &[(Figure::Cpu, peer)]));
        record
    }

    #[test]
    fn the_committed_page_and_charts_are_those_of_the_committed_record() {
        let docs = kcm_e2e_harness::binaries::root().join("docs");
        let read = |name: &str| std::fs::read_to_string(docs.join(name)).expect("it is committed");
        let record: Record = serde_json::from_str(&read("benchmark/record.json")).expect("the record is sound");
        let (page, charts) = record.page();
        assert!(read("benchmark.md") == page, "docs/benchmark.md differs from what the record and this code make");
        for (name, svg) in charts {
            assert!(read(&format!("benchmark/{name}")) == svg, "docs/benchmark/{name} differs");
        }
    }

    #[test]
    fn a_bar_is_held_against_the_peer_of_the_same_record() {
        let reached = record(0.3, 1.0).bars();
        let bar = "| replica-sets, made | CPU | 0.30 s | 1.00 s | 0.35 of the peer's: 0.35 s | reached |\n";
        assert!(reached.contains(bar), "{reached}");
        assert!(record(0.4, 1.0).bars().contains("| 0.35 of the peer's: 0.35 s | **missed** |\n"));
    }

    #[test]
    fn a_bar_may_be_held_against_another_phase() {
        let mut record = Record::default();
        let resident = |name: &str, bytes| phase(name, &[(Figure::Resident, bytes)]).remove(0);
        let phases = vec![resident("rested", 25e6), resident("restarted", 20e6)];
        record.add("deployments", "today", Subject::Ours, phases);
        let bars = record.bars();
        assert!(bars.contains("| 25.0 MB | – | 1.2 of ours, restarted: 24.0 MB | **missed** |\n"), "{bars}");
        let phases = vec![resident("without them", 15e6), resident("with them", 16.5e6)];
        record.add("gc-large", "today", Subject::Ours, phases);
        let bars = record.bars();
        assert!(bars.contains("| 16.5 MB | – | 2.0 MB above ours, without them: 17.0 MB | reached |\n"), "{bars}");
    }

    #[test]
    fn a_bar_that_was_not_measured_is_not_forgotten() {
        let table = Record::default().bars();
        assert_eq!(table.matches("not measured").count(), bars().count() + 1, "{table}");
        assert!(table.contains("| cut, rolled | wall | – | – | – | not measured |"), "{table}");
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

    #[test]
    fn what_one_step_takes_is_kept_until_it_is_measured_again() {
        let of = |nanos: f64| -> Record {
            let record =
                json!({ "scenarios": {}, "micro": { "measured": "today", "medians": { "queue/add": nanos } } });
            serde_json::from_value(record).expect("the record must be sound")
        };
        let mut record: Record = serde_json::from_str(r#"{"scenarios":{}}"#).expect("the record must be sound");
        assert!(!record.page().0.contains("What one step takes"));
        for later in [of(1.0), of(2.0), Record::default()] {
            record.renew(later);
        }
        assert!(record.page().0.ends_with("| queue/add | 2.00 ns |\n"), "{}", record.page().0);
    }

    #[test]
    fn the_page_counts_the_requests_of_which_there_are_many() {
        let mut record = Record::default();
        for (subject, pods) in [(Subject::Ours, 100), (Subject::Ours, 104), (Subject::Peer, 99)] {
            let requests = BTreeMap::from([("POST pods".to_owned(), pods), ("GET /api".to_owned(), 1)]);
            let figures = BTreeMap::from([(Figure::Cpu, 1.0)]);
            record.add("replica-sets", "today", subject, vec![Phase { name: "made".to_owned(), figures, requests }]);
        }
        let (page, _) = record.page();
        assert!(page.contains("| POST pods | 104 | 99 |"), "{page}");
        assert!(!page.contains("GET /api"), "{page}");
    }

    #[test]
    fn the_page_gives_spreads_and_ratios() {
        let mut record = record(0.4, 1.0);
        record.add("replica-sets", "today", Subject::Ours, phase("made", &[(Figure::Cpu, 0.6)]));
        let (page, charts) = record.page();
        assert!(page.contains("| CPU | 0.60 s (0.40 s to 0.60 s) | 1.00 s (1.00 s to 1.00 s) | 0.60 |"), "{page}");
        assert!(charts.contains_key("cpu.svg") && !charts.contains_key("memory.svg"));
    }
}
