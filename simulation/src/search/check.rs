//! [`check`]: the search of a test, which the environment can prolong or replace by one schedule.

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::Location;
use std::path::Path;

use super::budget::Asked;
use super::kept::{self, Kept};
use super::{Finding, Reference, Search, search_with, violation_of};
use crate::conductor::{Observe, Run, perform, run};
use crate::scenario::Scenario;
use crate::schedule::Schedule;
use crate::shrink::{MAX_RUNS, Shrunk, shrink};

/// Searches a scenario in so many runs, and fails with the shortened schedule and its trace if a rule is broken.
///
/// The environment can ask for more: `KCM_SIMULATE_RUNS`, `KCM_SIMULATE_MINUTES` and `KCM_SIMULATE_SEED` set the budget,
/// `KCM_SIMULATE_RECORD` names a file to which one line per search is appended, and `KCM_SIMULATE_REPLAY` names a file with
/// a schedule, which runs alone.
///
/// The shortened schedule of a failure is written to the folder `schedules` beside the test. Before it searches, `check`
/// runs the schedules of that folder: they must break no rule, or the rule of the bug that they plant.
///
/// # Panics
/// If a rule is broken, a schedule to replay does not apply, or a single perturbation has no effect.
#[track_caller]
pub fn check(scenario: &Scenario, runs: usize) {
    let asked = Asked::from_environment(runs);
    if asked.plants {
        return;
    }
    if let Some(file) = &asked.replay {
        replay(scenario, file);
        return;
    }
    let folder = kept::folder_of(Location::caller());
    if let Some(Err(failure)) = folder.as_ref().map(|folder| kept::replay_folder(folder, scenario)) {
        panic!("{failure}");
    }
    let search = search_with(scenario, asked.budget, |search| {
        if asked.is_long && search.runs.is_multiple_of(1000) {
            print(&progress(scenario, search, &asked));
        }
    });
    let failure = search.findings.first().map(|finding| explain(scenario, finding, folder.as_deref()));
    let line = progress(scenario, &search, &asked);
    if asked.is_long {
        print(&line);
    }
    if let Some(file) = &asked.record {
        record(file, scenario, &search, &asked);
    }
    if let Some(failure) = failure {
        panic!("{line}\n{failure}");
    }
}

/// Shortens the schedule of a failure, and writes it into a folder. Returns the schedule and the trace of its run.
fn explain(scenario: &Scenario, finding: &Finding, folder: Option<&Path>) -> String {
    let reference = Reference::of(&run(scenario, &Schedule::default()));
    let shrunk = shrink(&finding.schedule, MAX_RUNS, |schedule| violation_of(scenario, &reference, schedule));
    let mut text = String::new();
    match shrunk {
        Some(Shrunk { schedule, violation, runs, .. }) => {
            let trace = perform(scenario, &schedule, Observe::Nothing).trace;
            let written = folder.map(|folder| Kept::new(scenario, &violation.rule, &schedule).write(folder));
            let place = match written {
                Some(Ok(path)) => format!(" in {}", path.display()),
                Some(Err(error)) => format!(", which cannot be written: {error}"),
                None => String::new(),
            };
            write!(text, "{violation}\nschedule after {runs} runs{place}:\n{schedule}\ntrace:\n{trace}")
        }
        None => write!(text, "{}\nschedule:\n{}\ntrace:\n{}", finding.violation, finding.schedule, finding.trace),
    }
    .expect("a string accepts everything");
    text
}

fn replay(scenario: &Scenario, file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    let of = text.lines().find_map(|line| line.strip_prefix("# scenario "));
    if of.is_some_and(|of| of.trim() != scenario.name()) {
        return;
    }
    let schedule: Schedule = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let reference = Reference::of(&run(scenario, &Schedule::default()));
    let Run { violation, history, trace, not_applied, .. } = run(scenario, &schedule);
    print(&trace);
    assert!(not_applied.is_empty(), "does not apply: perturbations {not_applied:?} of\n{schedule}");
    if let Some(violation) = violation.or_else(|| reference.compare(&schedule, &history)) {
        panic!("{violation}");
    }
}

fn progress(scenario: &Scenario, search: &Search, asked: &Asked) -> String {
    let millis = asked.elapsed().as_secs_f64() * 1000.0 / f64::from(u32::try_from(search.runs).unwrap_or(u32::MAX));
    format!(
        "{}: runs {} · states {} (missing {:.2} %) · ends {} · not applied {} · failures {} · {millis:.1} ms/run{}",
        scenario.name(),
        search.runs,
        search.states,
        search.missing(),
        search.ends,
        search.not_applied,
        search.findings.len(),
        if search.is_exhausted { " · exhausted" } else { "" },
    )
}

/// Appends scenario, seed, runs, states, states that one run has reached, ends, failures and milliseconds.
fn record(file: &Path, scenario: &Scenario, search: &Search, asked: &Asked) {
    let line = format!(
        "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
        scenario.name(),
        asked.budget.seed,
        search.runs,
        search.states,
        search.rare,
        search.ends,
        search.findings.len(),
        asked.elapsed().as_millis(),
    );
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot record the search in {}: {error}", file.display()));
}

pub(super) fn print(text: &str) {
    // Without a standard error there is nobody to tell.
    drop(writeln!(std::io::stderr(), "{text}"));
}
