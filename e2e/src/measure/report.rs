//! The figures, their medians, and how they are printed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::manager::Subject;
use crate::requests::Requests;

/// What one manager cost in one run, or the median of several.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Resident with an almost empty cluster.
    pub idle_bytes: u64,
    /// One after the other, as there were more and more pods.
    pub steps: Vec<Step>,
    /// Resident after a restart with all the pods there.
    pub restarted_bytes: u64,
    /// CPU spent from that restart until it was at rest.
    pub restart_cpu_seconds: f64,
}

/// What it cost to get to this many replica sets.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Step {
    /// Replica sets there are at its end.
    pub replica_sets: usize,
    /// Pods there are at its end.
    pub pods: usize,
    /// From the first set made to the last status written.
    pub wall_seconds: f64,
    /// CPU of the manager, what it did behind the last status included.
    pub cpu_seconds: f64,
    /// Resident at its end.
    pub resident_bytes: u64,
    /// Requests of the manager, by verb and resource, and of the control plane itself.
    pub requests: BTreeMap<String, u64>,
}

impl Step {
    pub(super) fn new(
        sets: usize,
        pods_each: usize,
        wall: Duration,
        cpu: Duration,
        resident_bytes: u64,
        requests: &Requests,
    ) -> Self {
        Self {
            replica_sets: sets,
            pods: sets * pods_each,
            wall_seconds: wall.as_secs_f64(),
            cpu_seconds: cpu.as_secs_f64(),
            resident_bytes,
            requests: requests
                .iter()
                .map(|(kind, count)| (format!("{} {}", kind.verb, kind.resource), count))
                .collect(),
        }
    }

    fn requests_of(&self, kind: &str) -> u64 {
        self.requests.get(kind).copied().unwrap_or(0)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pods: {:.1} s, CPU {:.2} s, {}",
            self.pods,
            self.wall_seconds,
            self.cpu_seconds,
            megabytes(self.resident_bytes)
        )
    }
}

/// Every run of every manager, and the medians.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    runs: BTreeMap<&'static str, Vec<Figures>>,
    median: BTreeMap<&'static str, Figures>,
}

impl Report {
    /// Takes in one run.
    pub fn add(&mut self, subject: Subject, figures: Figures) {
        let name = match subject {
            Subject::Ours => "ours",
            Subject::Peer => "peer",
        };
        let runs = self.runs.entry(name).or_default();
        runs.push(figures);
        self.median.insert(name, median_of(runs));
    }

    /// The medians as a table, and what ours is of the peer's where both were measured.
    pub fn table(&self) -> String {
        let columns: Vec<Vec<Row>> = self.median.values().map(rows).collect();
        let Some(first) = columns.first() else { return String::from("nothing was measured") };
        let ratio = (columns.len() == 2).then_some("ours/peer");
        let heads = self.median.keys().copied().chain(ratio).map(str::to_owned).collect();
        let rules = std::iter::repeat_n("-".repeat(WIDTH - 1) + ":", columns.len() + usize::from(ratio.is_some()));
        let mut lines = vec![line("", heads), line(&"-".repeat(LABEL), rules.collect())];
        for (index, row) in first.iter().enumerate() {
            let cells: Vec<&Row> = columns.iter().filter_map(|column| column.get(index)).collect();
            let ratio = match cells.as_slice() {
                [ours, peer] if peer.value > 0.0 => Some(format!("{:.2}", ours.value / peer.value)),
                [_, _] => Some("–".to_owned()),
                _ => None,
            };
            lines.push(line(&row.label, cells.iter().map(|cell| cell.text.clone()).chain(ratio).collect()));
        }
        lines.join("\n")
    }
}

const LABEL: usize = 36;
const WIDTH: usize = 10;

fn line(label: &str, cells: Vec<String>) -> String {
    let cells = cells.into_iter().map(|cell| format!("{cell:>WIDTH$}"));
    let cells: Vec<String> = std::iter::once(format!("{label:<LABEL$}")).chain(cells).collect();
    format!("| {} |", cells.join(" | "))
}

struct Row {
    label: String,
    value: f64,
    text: String,
}

fn rows(figures: &Figures) -> Vec<Row> {
    let memory = |label: String, bytes: u64| Row { label, value: as_f64(bytes), text: megabytes(bytes) };
    let seconds = |label: String, value: f64| Row { label, value, text: format!("{value:.2} s") };
    let count = |label: String, count: u64| Row { label, value: as_f64(count), text: count.to_string() };
    let mut rows = vec![memory("resident, idle".to_owned(), figures.idle_bytes)];
    for step in &figures.steps {
        let at = format!("{} pods", step.pods);
        rows.push(memory(format!("{at}: resident"), step.resident_bytes));
        rows.push(seconds(format!("{at}: CPU"), step.cpu_seconds));
        rows.push(seconds(format!("{at}: wall"), step.wall_seconds));
        for kind in ["POST pods", "PUT replicasets/status", "POST events", "PATCH events"] {
            rows.push(count(format!("{at}: {kind}"), step.requests_of(kind)));
        }
    }
    if let [.., fewer, more] = figures.steps.as_slice() {
        let bytes = as_f64(more.resident_bytes) - as_f64(fewer.resident_bytes);
        let each = bytes / as_f64(u64::try_from(more.pods - fewer.pods).unwrap_or(u64::MAX));
        rows.push(Row { label: "per further pod".to_owned(), value: each, text: format!("{:.2} KB", each / 1000.0) });
    }
    rows.push(memory("restarted: resident".to_owned(), figures.restarted_bytes));
    rows.push(seconds("restarted: CPU".to_owned(), figures.restart_cpu_seconds));
    rows
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", as_f64(bytes) / 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "figures are far below 2^53, and printed with three digits")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

/// The median of each figure by itself.
fn median_of(runs: &[Figures]) -> Figures {
    let steps = runs.first().map_or(0, |run| run.steps.len());
    let step = |index: usize| {
        let all: Vec<&Step> = runs.iter().filter_map(|run| run.steps.get(index)).collect();
        let kinds: std::collections::BTreeSet<&String> = all.iter().flat_map(|step| step.requests.keys()).collect();
        Step {
            replica_sets: median(all.iter().map(|it| it.replica_sets)),
            pods: median(all.iter().map(|it| it.pods)),
            wall_seconds: median_float(all.iter().map(|it| it.wall_seconds)),
            cpu_seconds: median_float(all.iter().map(|it| it.cpu_seconds)),
            resident_bytes: median(all.iter().map(|it| it.resident_bytes)),
            requests: kinds
                .into_iter()
                .map(|kind| (kind.clone(), median(all.iter().map(|it| it.requests_of(kind)))))
                .collect(),
        }
    };
    Figures {
        idle_bytes: median(runs.iter().map(|run| run.idle_bytes)),
        steps: (0..steps).map(step).collect(),
        restarted_bytes: median(runs.iter().map(|run| run.restarted_bytes)),
        restart_cpu_seconds: median_float(runs.iter().map(|run| run.restart_cpu_seconds)),
    }
}

fn median<T: Ord + Copy + Default>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn median_float(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Figures, Report, Step, median};
    use crate::manager::Subject;

    fn figures(idle_bytes: u64, resident: [u64; 2]) -> Figures {
        let step = |sets: usize, resident_bytes| Step {
            replica_sets: sets,
            pods: sets * 50,
            resident_bytes,
            cpu_seconds: 0.5,
            ..Step::default()
        };
        Figures { idle_bytes, steps: vec![step(100, resident[0]), step(400, resident[1])], ..Figures::default() }
    }

    #[test]
    fn the_median_is_the_middle_of_each_figure() {
        assert_eq!(median([3, 1, 2].into_iter()), 2);
        assert_eq!(median::<u64>(std::iter::empty()), 0);
        let mut report = Report::default();
        for idle in [5, 9, 7] {
            report.add(Subject::Ours, figures(idle, [10, 20]));
        }
        assert_eq!(report.median["ours"].idle_bytes, 7);
    }

    #[test]
    fn the_table_gives_bytes_per_further_pod_and_the_ratio() {
        let mut report = Report::default();
        report.add(Subject::Ours, figures(10_000_000, [20_000_000, 50_000_000]));
        report.add(Subject::Peer, figures(40_000_000, [100_000_000, 250_000_000]));
        let table = report.table();
        let cells = |label: &str| {
            let line = table.lines().find(|line| line.contains(label)).unwrap_or_default();
            line.split('|')
                .skip(2)
                .map(|cell| cell.trim().to_owned())
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>()
        };
        assert_eq!(cells("resident, idle"), ["10.0 MB", "40.0 MB", "0.25"]);
        assert_eq!(cells("per further pod"), ["2.00 KB", "10.00 KB", "0.20"]);
    }
}
