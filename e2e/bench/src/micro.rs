//! What one step takes: the medians of the micro benchmarks, as criterion leaves them in files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bars::{GROWTH, Growth, Held};

/// The medians of all micro benchmarks, measured in one go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Micro {
    /// When, what and on what.
    measured: String,
    /// Nanoseconds by criterion's name of the benchmark; where an iteration has elements, of each.
    medians: BTreeMap<String, f64>,
}

impl Micro {
    /// Reads criterion's folder.
    ///
    /// # Errors
    ///
    /// If there is none, it has no figures, or one cannot be read.
    pub(super) fn read(folder: &Path, measured: String) -> Result<Self> {
        let mut medians = BTreeMap::new();
        collect(folder, &mut medians)?;
        ensure!(!medians.is_empty(), "{} has no figures of criterion", folder.display());
        Ok(Self { measured, medians })
    }

    /// All of them as plain lines.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        for (name, median) in &self.medians {
            writeln!(text, "  {name:<80}{:>12}", time(*median)).expect("writing to a string cannot fail");
        }
        text
    }

    /// The page of them.
    pub(super) fn page(&self) -> String {
        let mut text = format!(
            "# Benchmark: single steps\n\nMeasured by `cargo xtask bench --micro` {}. If one run of a benchmark has many \
             elements, the figure is the time of one element. The benchmarks of events and of growth use the allocator of \
             the binary, all others the allocator of the system.\n\n| step | median |\n| --- | --- |\n",
            self.measured
        );
        for (name, median) in &self.medians {
            writeln!(text, "| {name} | {} |", time(*median)).expect("writing to a string cannot fail");
        }
        text
    }
}

/// The limit of what an event costs beside many pods, and whether it is reached; `None` if it was not measured.
pub(super) fn bar(micro: Option<&Micro>) -> Option<Held> {
    let Growth { event, few, many, limit } = GROWTH;
    let of = |pods: u32| micro.and_then(|it| it.medians.get(&format!("{event}/{pods}"))).copied();
    let (beside_many, beside_few) = (of(many)?, of(few)?);
    let most = beside_few * limit;
    let how = format!("{limit} of ours, beside {few}: {}", time(most));
    let row = format!("| event, beside {many} pods | time | {} | – | {how} |", time(beside_many));
    Some(Held { row, is_reached: beside_many <= most })
}

fn collect(folder: &Path, medians: &mut BTreeMap<String, f64>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        // Beside the latest figures lie those of before.
        if path.ends_with("new") {
            let (name, median) =
                figure(&path).with_context(|| format!("no figure of criterion: {}", path.display()))?;
            medians.insert(name, median);
        } else if path.is_dir() {
            collect(&path, medians)?;
        }
    }
    Ok(())
}

/// Name and median of one benchmark.
fn figure(folder: &Path) -> Result<(String, f64)> {
    let read = |file: &str| -> Result<Value> { Ok(serde_json::from_slice(&fs::read(folder.join(file))?)?) };
    let benchmark = read("benchmark.json")?;
    let name = benchmark["full_id"].as_str().context("`full_id` must be a string")?.to_owned();
    let elements = benchmark["throughput"]["Elements"].as_f64().unwrap_or(1.0);
    let median = read("estimates.json")?["median"]["point_estimate"].as_f64().context("the median must be a number")?;
    Ok((name, median / elements))
}

/// Nanoseconds with three digits and the unit that a reader expects.
fn time(nanos: f64) -> String {
    let (value, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        _ => (nanos / 1e6, "ms"),
    };
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micro(few: f64, many: f64) -> Micro {
        let name = |pods: u32| format!("{}/{pods}", GROWTH.event);
        let medians = BTreeMap::from([(name(GROWTH.few), few), (name(GROWTH.many), many)]);
        Micro { measured: "today".to_owned(), medians }
    }

    #[test]
    fn an_event_beside_many_pods_is_held_against_one_beside_few() {
        let held = |limit, is_reached| {
            let row = format!("| event, beside 50000 pods | time | 5.20 µs | – | {limit} |");
            Some(Held { row, is_reached })
        };
        assert_eq!(bar(Some(&micro(4000.0, 5200.0))), held("1.3 of ours, beside 1000: 5.20 µs", true));
        assert_eq!(bar(Some(&micro(3900.0, 5200.0))), held("1.3 of ours, beside 1000: 5.07 µs", false));
        assert_eq!(bar(None), None);
        let mut without_few = micro(4000.0, 5200.0);
        without_few.medians.pop_first();
        assert_eq!(bar(Some(&without_few)), None);
    }

    #[test]
    fn times_have_three_digits() {
        let times = [5.678, 56.78, 567.8, 5678.0, 5.678e6].map(time);
        assert_eq!(times, ["5.68 ns", "56.8 ns", "568 ns", "5.68 µs", "5.68 ms"]);
    }

    #[test]
    fn the_latest_figures_of_criterion_are_read() {
        let folder = tempfile::tempdir().expect("a folder must be to be had");
        let benchmark = |name: &str, more: &str, age: &str, median: f64| {
            let figures = folder.path().join(name).join(age);
            fs::create_dir_all(&figures).expect("the folder must be writable");
            for (file, text) in [
                ("benchmark.json", format!(r#"{{"full_id":"{name}"{more}}}"#)),
                ("estimates.json", format!(r#"{{"median":{{"point_estimate":{median}}}}}"#)),
            ] {
                fs::write(figures.join(file), text).expect("the folder must be writable");
            }
        };
        benchmark("plan/50", "", "base", 1.0);
        benchmark("plan/50", r#","throughput":null"#, "new", 2.0);
        benchmark("queue/add", r#","throughput":{"Elements":1000}"#, "new", 3e6);
        let read = Micro::read(folder.path(), "today".to_owned()).expect("the figures must be read");
        assert_eq!(read.medians, BTreeMap::from([("plan/50".to_owned(), 2.0), ("queue/add".to_owned(), 3000.0)]));
        assert!(read.page().contains("| queue/add | 3.00 µs |"));
        assert!(Micro::read(&folder.path().join("none"), String::new()).is_err());
    }
}
