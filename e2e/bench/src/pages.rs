//! The pages of a record: headlines, charts and limits on one page, and a page for each scenario.

use std::collections::{BTreeMap, BTreeSet};

use super::bars::{Bar, Held, Limit, bars};
use super::chart;
use super::figures::{Figure, Spread};
use super::micro::{self, Micro};
use super::report::{Record, Row, line};
use super::scenarios::SCENARIOS;

/// A figure of the table that readers see first.
struct Headline {
    text: &'static str,
    scenario: &'static str,
    phase: &'static str,
    figure: Figure,
}

const fn headline(text: &'static str, scenario: &'static str, phase: &'static str, figure: Figure) -> Headline {
    Headline { text, scenario, phase, figure }
}

const HEADLINES: [Headline; 8] = [
    headline("resident memory, idle", "idle", "idle", Figure::Resident),
    headline("resident memory after a rollout of 5,000 pods", "deployments", "rolled", Figure::Resident),
    headline("resident memory after a restart with 20,000 pods", "restart", "with 20,000 pods", Figure::Resident),
    headline("time until caches are full after that restart", "restart", "with 20,000 pods", Figure::CachesFull),
    headline("CPU until 100 deployments of 50 pods are available", "deployments", "available", Figure::Cpu),
    headline("CPU to roll out all of them", "deployments", "rolled", Figure::Cpu),
    headline("time to roll out all of them", "deployments", "rolled", Figure::Wall),
    headline(
        "time from a ready pod to its endpoint slice, 1,000 services rolling",
        "services",
        "rolled",
        Figure::Latency,
    ),
];

/// A chart of one figure.
struct Chart {
    file: &'static str,
    title: &'static str,
    figure: Figure,
    /// The scenarios and phases that are shown.
    phases: &'static [(&'static str, &'static str)],
}

const CHARTS: [Chart; 2] = [
    Chart {
        file: "memory.svg",
        title: "Resident memory at rest",
        figure: Figure::Resident,
        phases: &[
            ("idle", "idle"),
            ("deployments", "available"),
            ("deployments", "rolled"),
            ("restart", "with 20,000 pods"),
            ("rest", "50,000 pods"),
            ("services", "rolled"),
        ],
    },
    Chart {
        file: "cpu.svg",
        title: "CPU time",
        figure: Figure::Cpu,
        phases: &[
            ("replica-sets", "made"),
            ("deployments", "available"),
            ("deployments", "rolled"),
            ("service-large", "rolled"),
            ("budgets", "drained"),
            ("autoscalers", "rested"),
        ],
    },
];

const INTRODUCTION: &str = "\
# Benchmark

Our manager beside upstream's kube-controller-manager. Each run starts a new control plane with 50 simulated nodes. Both
managers run the same controllers with the same limits, one after the other. Figures are medians of the runs that the list of
scenarios names; lower is better, except for changes per CPU second.

";

const METHOD: &str = "
## How it is measured

`cargo xtask bench --full` writes these pages, `--scenario` renews a part of them, and `--micro` the single steps. Compare
figures within a scenario only: each page says on which machine the scenario was played.

- **Ours** is the shipped build. It serves nothing during a run; upstream's manager serves its metrics over HTTPS.
- **Figures** are medians, with minimum and maximum in brackets on the pages of the scenarios.
- **Resident memory** is read after ten seconds of rest. Go collects garbage only every two minutes when idle, so upstream's
  figure may include garbage. *Live* and *held beside it* are the view of the allocator: jemalloc's here, the Go
  runtime's there.
- **Requests** are those of all clients: the managers, the scheduler, the simulated nodes, and the benchmark, which waits
  by listing. *Requests of the manager* are its own. A manager that falls behind sends fewer, because changes merge while
  they wait: read them beside the latency.
- **Until caches are full** is the time from the first line of the log to the last \"Caches are synced\". Upstream's manager
  looks every 0.1 s.
- **The longest wait of a key** in upstream's manager is a power of ten, the bound of a bucket of its histogram.
";

/// The pages of a record and its charts.
#[derive(Debug)]
pub struct Pages {
    /// The text of each file, by its path in the folder of documents.
    pub files: BTreeMap<String, String>,
    headlines: String,
}

impl Pages {
    /// Writes the pages of a record.
    pub fn of(record: &Record) -> Self {
        let rows = record.rows();
        let headlines = headlines(record);
        let mut files = BTreeMap::new();
        let mut page = format!("{INTRODUCTION}{headlines}");
        for Chart { file, title, figure, phases } in CHARTS {
            let pairs = phases.iter().filter_map(|(scenario, phase)| {
                let row =
                    rows.iter().find(|it| it.scenario == *scenario && it.phase == *phase && it.figure == figure)?;
                let label = format!("{scenario}, {phase}");
                Some(chart::Pair { label, ours: row.ours?.median, peer: row.peer?.median })
            });
            let pairs: Vec<chart::Pair> = pairs.collect();
            if !pairs.is_empty() {
                files.insert(format!("benchmark/{file}"), chart::bars(title, &pairs, |value| figure.text(value)));
                line(&mut page, &format!("\n![{title}](benchmark/{file})"));
            }
        }
        page.push_str(&limits(record));
        page.push_str("\n## Scenarios\n\n| scenario | what it does | measured |\n| --- | --- | --- |\n");
        for phases in rows.chunk_by(|one, next| one.scenario == next.scenario) {
            let name = phases[0].scenario;
            let about = SCENARIOS.iter().find(|it| it.name == name).map_or("", |it| it.about);
            let measured = record.scenarios.get(name).map_or("", |it| &it.measured);
            let when = measured.split(',').next().unwrap_or_default();
            line(&mut page, &format!("| [{name}](benchmark/{name}.md) | {about} | {when} |"));
            files.insert(format!("benchmark/{name}.md"), scenario(record, name, about, measured, phases));
        }
        if let Some(micro) = &record.micro {
            page.push_str("\nSingle steps, such as decoding a pod: [steps](benchmark/steps.md).\n");
            files.insert("benchmark/steps.md".to_owned(), Micro::page(micro));
        }
        page.push_str(METHOD);
        files.insert("benchmark.md".to_owned(), page);
        Self { files, headlines }
    }

    /// A page whose part between the markers `headlines` is the table of headlines; `None` if it has no markers.
    pub fn with_headlines(&self, page: &str) -> Option<String> {
        let (before, rest) = page.split_once("<!-- headlines: begin -->\n")?;
        let (_, after) = rest.split_once("<!-- headlines: end -->\n")?;
        let headlines = &self.headlines;
        Some(format!("{before}<!-- headlines: begin -->\n{headlines}<!-- headlines: end -->\n{after}"))
    }
}

fn headlines(record: &Record) -> String {
    let mut text = String::from("| | ours | upstream | ours/upstream |\n| --- | --- | --- | --- |\n");
    for Headline { text: label, scenario, phase, figure } in HEADLINES {
        let spread = |subject| record.spread(scenario, subject, phase, figure).map(|it| it.median);
        if let (Some(ours), Some(peer)) = (spread("ours"), spread("peer")) {
            let ratio = parts(ours / peer);
            line(&mut text, &format!("| {label} | {} | {} | {ratio} |", figure.text(ours), figure.text(peer)));
        }
    }
    text
}

/// A ratio with two digits, and with three where two say nothing.
fn parts(ratio: f64) -> String {
    if ratio < 0.01 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// The limits that were measured, and the scenarios whose limits were not.
fn limits(record: &Record) -> String {
    let mut held = Vec::new();
    let mut missing = BTreeSet::new();
    for bar in bars() {
        match held_limit(record, bar) {
            Some(it) => held.push(it),
            None => {
                missing.insert(bar.scenario);
            }
        }
    }
    held.extend(micro::bar(record.micro.as_ref()));
    let reached = held.iter().filter(|it| it.is_reached).count();
    let mut text = format!(
        "\n## Limits\n\nThe limits were set before the first measurement. {reached} of the {} that have been measured are \
         reached.\n\n| scenario | figure | ours | upstream | limit | |\n| --- | --- | --- | --- | --- | --- |\n",
        held.len()
    );
    for Held { row, is_reached } in held {
        line(&mut text, &format!("{row} {} |", if is_reached { "reached" } else { "**missed**" }));
    }
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.into_iter().collect();
        line(&mut text, &format!("\nScenarios with limits that have not been measured yet: {}.", missing.join(", ")));
    }
    text
}

/// The limit beside what was measured; `None` if it was not.
fn held_limit(record: &Record, bar: Bar) -> Option<Held> {
    let Bar { scenario, phase, figure, limit } = bar;
    let spread = |subject| record.spread(scenario, subject, phase, figure).map(|it| it.median);
    let (ours, peer) = (spread("ours")?, spread("peer"));
    let most = limit.value(peer, |phase| record.spread(scenario, "ours", phase, figure).map(|it| it.median))?;
    let peer = peer.map_or("–".to_owned(), |peer| figure.text(peer));
    let how = match limit {
        Limit::Value(_) => figure.text(most),
        Limit::OfPeer(part) => format!("{part} of upstream's: {}", figure.text(most)),
        Limit::OfPhase(part, phase) => format!("{part} of ours, {phase}: {}", figure.text(most)),
        Limit::AbovePhase(more, phase) => {
            format!("{} above ours, {phase}: {}", figure.text(more), figure.text(most))
        }
    };
    let row = format!("| {scenario}, {phase} | {} | {} | {peer} | {how} |", figure.label(), figure.text(ours));
    Some(Held { row, is_reached: ours <= most })
}

/// The page of a scenario.
fn scenario(record: &Record, name: &str, about: &str, measured: &str, rows: &[Row]) -> String {
    let mut page = format!("# Benchmark: {name}\n\nWhat it does: {about}.\n\nMeasured {measured}.\n");
    for figures in rows.chunk_by(|one, next| one.phase == next.phase) {
        write_phase(record, &mut page, name, &figures[0].phase, figures);
    }
    page
}

fn write_phase(record: &Record, page: &mut String, scenario: &str, phase: &str, figures: &[Row]) {
    line(page, &format!("\n## {phase}\n\n| | ours | upstream | ours/upstream |\n| --- | --- | --- | --- |"));
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
    let requests = record.requests(scenario, phase);
    if !requests.is_empty() {
        line(page, "\n| requests | ours | upstream |\n| --- | --- | --- |");
    }
    for (kind, [ours, peer]) in requests {
        line(page, &format!("| {kind} | {ours} | {peer} |"));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::figures::Phase;
    use kcm_e2e_harness::subject::Subject;

    fn phase(name: &str, figures: &[(Figure, f64)]) -> Vec<Phase> {
        vec![Phase { name: name.to_owned(), figures: figures.iter().copied().collect(), ..Phase::default() }]
    }

    fn record(ours: f64, peer: f64) -> Record {
        let mut record = Record::default();
        record.add("replica-sets", "today", Subject::Ours, phase("made", &[(Figure::Cpu, ours)]));
        record.add("replica-sets", "today", Subject::Peer, phase("made", &[(Figure::Cpu, peer)]));
        record
    }

    fn page(record: &Record) -> String {
        Pages::of(record).files["benchmark.md"].clone()
    }

    #[test]
    fn the_committed_pages_are_those_of_the_committed_record() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let read = |name: &str| fs::read_to_string(docs.join(name)).unwrap_or_default();
        let record: Record = serde_json::from_str(&read("benchmark/record.json")).expect("the record is sound");
        let pages = Pages::of(&record);
        for (name, text) in &pages.files {
            if std::env::var_os("UPDATE").is_some() {
                fs::write(docs.join(name), text).expect("the page can be written");
            }
            assert!(read(name) == *text, "docs/{name} differs from what the record makes: run this with UPDATE=1");
        }
        let readme = read("../README.md");
        let expected = pages.with_headlines(&readme).expect("README has the markers");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(docs.join("../README.md"), &expected).expect("README can be written");
        }
        assert!(read("../README.md") == expected, "README differs from what the record makes: run this with UPDATE=1");
        // A page that nothing writes any more would stay as it is for ever.
        for file in fs::read_dir(docs.join("benchmark")).expect("the folder is there") {
            let name = file.expect("the folder can be read").file_name().into_string().expect("names are UTF-8");
            let is_made = pages.files.contains_key(&format!("benchmark/{name}"));
            assert!(is_made || name == "record.json", "nothing makes docs/benchmark/{name}");
        }
    }

    #[test]
    fn every_headline_and_every_charted_phase_is_measured() {
        let text = include_str!("../../../docs/benchmark/record.json");
        let record: Record = serde_json::from_str(text).expect("the record is sound");
        let pages = Pages::of(&record);
        assert_eq!(pages.headlines.lines().count(), 2 + HEADLINES.len(), "{}", pages.headlines);
        for Chart { file, phases, .. } in CHARTS {
            assert_eq!(pages.files[&format!("benchmark/{file}")].matches(OURS).count(), 1 + phases.len(), "{file}");
        }
    }

    /// The colour of our bars.
    const OURS: &str = "fill=\"#1b7a4b\"";

    #[test]
    fn headlines_stand_between_the_markers_of_a_page() {
        let mut record = Record::default();
        for (subject, bytes) in [(Subject::Ours, 15e6), (Subject::Peer, 75e6)] {
            record.add("idle", "today", subject, phase("idle", &[(Figure::Resident, bytes)]));
        }
        let pages = Pages::of(&record);
        let page = "a\n<!-- headlines: begin -->\nold\n<!-- headlines: end -->\nb\n";
        let page = pages.with_headlines(page).expect("it has the markers");
        assert!(page.contains("\n| resident memory, idle | 15.0 MB | 75.0 MB | 0.20 |\n"), "{page}");
        assert!(page.starts_with("a\n") && page.ends_with("-->\nb\n") && !page.contains("old"), "{page}");
        assert_eq!(pages.with_headlines("no markers"), None);
    }

    #[test]
    fn a_ratio_is_never_nothing() {
        assert_eq!([0.204, 0.0012].map(parts), ["0.20", "0.001"]);
    }

    #[test]
    fn a_bar_is_held_against_the_peer_of_the_same_record() {
        let reached = page(&record(0.3, 1.0));
        let bar = "| replica-sets, made | CPU | 0.30 s | 1.00 s | 0.35 of upstream's: 0.35 s | reached |\n";
        assert!(
            reached.contains(bar) && reached.contains("1 of the 1 that have been measured are reached"),
            "{reached}"
        );
        assert!(page(&record(0.4, 1.0)).contains("| 0.35 of upstream's: 0.35 s | **missed** |\n"));
    }

    #[test]
    fn a_bar_may_be_held_against_another_phase() {
        let mut record = Record::default();
        let resident = |name: &str, bytes| phase(name, &[(Figure::Resident, bytes)]).remove(0);
        let phases = vec![resident("rested", 25e6), resident("restarted", 20e6)];
        record.add("deployments", "today", Subject::Ours, phases);
        let text = page(&record);
        assert!(text.contains("| 25.0 MB | – | 1.2 of ours, restarted: 24.0 MB | **missed** |\n"), "{text}");
        let phases = vec![resident("without them", 15e6), resident("with them", 16.5e6)];
        record.add("gc-large", "today", Subject::Ours, phases);
        let text = page(&record);
        assert!(text.contains("| 16.5 MB | – | 2.0 MB above ours, without them: 17.0 MB | reached |\n"), "{text}");
    }

    #[test]
    fn a_bar_that_was_not_measured_has_no_row_and_is_not_forgotten() {
        let text = page(&Record::default());
        assert!(!text.contains("| cut, rolled |") && text.contains("0 of the 0 that have been measured"), "{text}");
        let missing = text.lines().find(|line| line.starts_with("Scenarios with limits that have not been measured"));
        let missing = missing.expect("they are named");
        assert!(bars().all(|bar| missing.contains(bar.scenario)), "{missing}");
    }

    #[test]
    fn what_one_step_takes_is_kept_until_it_is_measured_again() {
        let of = |nanos: f64| -> Record {
            let record =
                json!({ "scenarios": {}, "micro": { "measured": "today", "medians": { "queue/add": nanos } } });
            serde_json::from_value(record).expect("the record must be sound")
        };
        let mut record: Record = serde_json::from_str(r#"{"scenarios":{}}"#).expect("the record must be sound");
        assert!(!Pages::of(&record).files.contains_key("benchmark/steps.md"));
        for later in [of(1.0), of(2.0), Record::default()] {
            record.renew(later);
        }
        let pages = Pages::of(&record);
        assert!(pages.files["benchmark/steps.md"].ends_with("| queue/add | 2.00 ns |\n"), "{pages:?}");
        assert!(page(&record).contains("](benchmark/steps.md)"));
    }

    #[test]
    fn the_page_of_a_scenario_counts_the_requests_of_which_there_are_many() {
        let mut record = Record::default();
        for (subject, pods) in [(Subject::Ours, 100), (Subject::Ours, 104), (Subject::Peer, 99)] {
            let requests = BTreeMap::from([("POST pods".to_owned(), pods), ("GET /api".to_owned(), 1)]);
            let figures = BTreeMap::from([(Figure::Cpu, 1.0)]);
            record.add("replica-sets", "today", subject, vec![Phase { name: "made".to_owned(), figures, requests }]);
        }
        let page = &Pages::of(&record).files["benchmark/replica-sets.md"];
        assert!(page.contains("| POST pods | 104 | 99 |"), "{page}");
        assert!(!page.contains("GET /api"), "{page}");
    }

    #[test]
    fn the_page_of_a_scenario_gives_spreads_and_ratios() {
        let mut record = record(0.4, 1.0);
        record.add("replica-sets", "today", Subject::Ours, phase("made", &[(Figure::Cpu, 0.6)]));
        let files = Pages::of(&record).files;
        let page = &files["benchmark/replica-sets.md"];
        assert!(page.contains("| CPU | 0.60 s (0.40 s to 0.60 s) | 1.00 s (1.00 s to 1.00 s) | 0.60 |"), "{page}");
        assert!(files.contains_key("benchmark/cpu.svg") && !files.contains_key("benchmark/memory.svg"));
    }
}
