//! The demo: a deployment, a rolling update, a bad image, a rollback, a scale and an autoscaler, live in the terminal.
//!
//! `script` lists the steps and when each is over, `snapshot` extracts the displayed state from the objects, `view`
//! formats it; all three are pure. This module is the loop that writes, reads and draws.

mod script;
mod snapshot;
mod view;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use kcm_framework::Metrics;
use kcm_sandbox_apiserver::{DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, Resource, Sandbox, Status};
use tokio::time::Instant;

use crate::screen::Screen;
use script::{Action, NAME, STEPS, Step};
use snapshot::{Event, Objects, Snapshot};
use view::Progress;

/// Controllers that the demo needs to finish.
pub(super) const CONTROLLERS: [&str; 3] =
    ["deployment-controller", "replicaset-controller", "horizontal-pod-autoscaler-controller"];

const AUTOSCALERS: Resource =
    Resource::namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler");

const NAMESPACE: &str = "default";
/// Interval between two snapshots.
const TICK: Duration = Duration::from_millis(200);
/// Time that the end of a step stays on the screen.
const PAUSE: Duration = Duration::from_secs(3);
/// Timeout of a step; the summary names a step that exceeded it.
const STEP_TIMEOUT: Duration = Duration::from_mins(2);

/// Reasons why the demo ends early.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    #[error("the API refused a step of the demo")]
    Refused(#[from] Status),
    #[error("cannot write to the terminal")]
    Write(#[from] io::Error),
}

/// The outcome of a step.
struct StepResult {
    step: &'static Step,
    took: Duration,
    over: bool,
}

struct Demo<'a, W> {
    sandbox: &'a Sandbox,
    metrics: &'a Metrics,
    screen: Screen,
    out: W,
    began: Instant,
    /// Number of lines to draw over.
    drawn: usize,
    last_line: String,
    printed_events: Vec<Event>,
}

/// Plays the demo and prints its summary.
pub(super) async fn play(
    sandbox: &Sandbox,
    metrics: &Metrics,
    screen: Screen,
    out: impl Write,
) -> Result<(), DemoError> {
    let mut demo = Demo {
        sandbox,
        metrics,
        screen,
        out,
        began: Instant::now(),
        drawn: 0,
        last_line: String::new(),
        printed_events: Vec::new(),
    };
    match demo.play().await {
        // A closed pipe, as with `head`, is no failure.
        Err(DemoError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

impl<W: Write> Demo<'_, W> {
    async fn play(&mut self) -> Result<(), DemoError> {
        if self.screen.redraws {
            writeln!(self.out)?;
        }
        let mut played = Vec::new();
        for (at, step) in STEPS.iter().enumerate() {
            played.push(self.step(step, at + 1).await?);
        }
        self.summary(&played)
    }

    async fn step(&mut self, step: &'static Step, number: usize) -> Result<StepResult, DemoError> {
        if !self.screen.redraws {
            writeln!(self.out, "\n{} of {}: {}\n$ {}", number, STEPS.len(), step.caption, step.command)?;
        }
        self.act(step.act)?;
        let began = Instant::now();
        // Only a screen that is drawn over needs time to be read.
        let pause = if self.screen.redraws { PAUSE } else { Duration::ZERO };
        let mut over_at = None;
        while over_at.is_none_or(|at: Instant| at.elapsed() < pause) && began.elapsed() < STEP_TIMEOUT {
            let snapshot = self.observe();
            if over_at.is_none() && step.is_over(&snapshot) {
                over_at = Some(Instant::now());
            }
            self.show(&snapshot, step, number)?;
            tokio::time::sleep(TICK).await;
        }
        let took = over_at.map_or(STEP_TIMEOUT, |at| at - began);
        Ok(StepResult { step, took, over: over_at.is_some() })
    }

    fn act(&self, act: Action) -> Result<(), Status> {
        let key = kcm_sandbox_apiserver::ObjectKey::namespaced(NAMESPACE, NAME);
        let patch = match act {
            Action::Create { image, replicas } => {
                return self.sandbox.create(&DEPLOYMENTS, script::deployment(image, replicas)).map(drop);
            }
            Action::Autoscale { max } => {
                return self.sandbox.create(&AUTOSCALERS, script::autoscaler(max)).map(drop);
            }
            Action::SetImage(image) | Action::Undo(image) => script::image_patch(image),
            Action::Scale(replicas) => serde_json::json!({ "spec": { "replicas": replicas } }),
        };
        self.sandbox.patch(&DEPLOYMENTS, &key, &patch).map(drop)
    }

    fn observe(&self) -> Snapshot {
        let list = |resource| self.sandbox.list(resource, Some(NAMESPACE));
        let objects = Objects {
            deployments: list(&DEPLOYMENTS),
            replica_sets: list(&REPLICA_SETS),
            pods: list(&PODS),
            events: list(&EVENTS),
        };
        Snapshot::of(&objects, queue_depths(&self.metrics.encode()))
    }

    fn show(&mut self, snapshot: &Snapshot, step: &Step, number: usize) -> io::Result<()> {
        if !self.screen.redraws {
            return self.print_changes(snapshot);
        }
        let progress =
            Progress { step, number, of: STEPS.len(), elapsed: self.began.elapsed(), now: self.sandbox.now() };
        let lines = view::screen(snapshot, &progress, self.screen);
        let mut text = String::new();
        if self.drawn > 0 {
            // Moves the cursor to the first drawn line.
            text = format!("\x1b[{}A", self.drawn);
        }
        for line in &lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        // Clears the lines of the previous drawing beneath.
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Prints new events and the changed state as lines.
    fn print_changes(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        for event in snapshot.events.iter().filter(|event| !self.printed_events.contains(event)) {
            writeln!(self.out, "{}", view::event(event))?;
        }
        self.printed_events.clone_from(&snapshot.events);
        let line = view::line(snapshot);
        if line != self.last_line {
            writeln!(self.out, "{} {line}", view::clock(self.began.elapsed()))?;
            self.last_line = line;
        }
        self.out.flush()
    }

    fn summary(&mut self, played: &[StepResult]) -> Result<(), DemoError> {
        writeln!(self.out, "\nWhat you saw:")?;
        for StepResult { step, took, over } in played {
            let time = format!("{:.1} s", took.as_secs_f32());
            let end = if *over { step.lesson } else { "it was not over when the demo went on" };
            writeln!(self.out, "  {}\n    {time}: {end}", step.command)?;
        }
        self.out.flush()?;
        Ok(())
    }
}

/// Reads queue depths from metrics in the text format.
fn queue_depths(metrics: &str) -> BTreeMap<String, u64> {
    let depth = |line: &str| {
        let (name, value) = line.strip_prefix("workqueue_depth{name=\"")?.split_once("\"} ")?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    metrics.lines().filter_map(depth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails with this error kind.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_closed_pipe_ends_it_and_other_write_errors_are_returned() {
        let play = async |kind| {
            let screen = Screen { redraws: false, colour: false, unicode: true };
            play(&Sandbox::default(), &Metrics::new(), screen, Broken(kind)).await
        };
        assert!(play(io::ErrorKind::BrokenPipe).await.is_ok());
        assert!(matches!(play(io::ErrorKind::StorageFull).await, Err(DemoError::Write(_))));
    }

    #[test]
    fn queue_depths_are_found_among_other_metrics() {
        let metrics = "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"deployment\"} 3\nother 1\n";
        assert_eq!(queue_depths(metrics), BTreeMap::from([("deployment".to_owned(), 3)]));
    }
}
