//! The demo: a deployment, a rolling update, a bad image, a rollback and a scale, live in the terminal.
//!
//! `script` says what is played and when a step is over, `picture` what is seen, `view` how it looks; all three are
//! pure. Here is the loop that acts, looks and draws.

mod picture;
mod script;
mod view;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use kcm_framework::Metrics;
use kcm_sandbox_apiserver::{DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, Sandbox, Status};
use tokio::time::Instant;

use super::screen::Screen;
use picture::{Happening, Objects, Picture};
use script::{Act, NAME, STEPS, Step};
use view::Moment;

/// The controllers without which the demo never gets to its end.
pub(super) const CONTROLLERS: [&str; 2] = ["deployment-controller", "replicaset-controller"];

const NAMESPACE: &str = "default";
/// Between two looks at the cluster.
const TICK: Duration = Duration::from_millis(200);
/// How long the end of a step stays on the screen.
const PAUSE: Duration = Duration::from_secs(3);
/// A step that takes longer is given up: the summary says so.
const PATIENCE: Duration = Duration::from_mins(2);

/// Why the demo broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    #[error("the API refused a step of the demo")]
    Refused(#[from] Status),
    #[error("cannot write to the terminal")]
    Write(#[from] io::Error),
}

/// What came of a step.
struct Played {
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
    /// Lines on the screen, to be drawn over.
    drawn: usize,
    last_line: String,
    told: Vec<Happening>,
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
        told: Vec::new(),
    };
    match demo.play().await {
        // A reader that has seen enough, as `head`, is no failure.
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

    async fn step(&mut self, step: &'static Step, number: usize) -> Result<Played, DemoError> {
        if !self.screen.redraws {
            writeln!(self.out, "\n{} of {}: {}\n$ {}", number, STEPS.len(), step.caption, step.command)?;
        }
        self.act(step.act)?;
        let began = Instant::now();
        // Lines stay: only what is drawn over has to be looked at in time.
        let pause = if self.screen.redraws { PAUSE } else { Duration::ZERO };
        let mut over_at = None;
        while over_at.is_none_or(|at: Instant| at.elapsed() < pause) && began.elapsed() < PATIENCE {
            let picture = self.look();
            if over_at.is_none() && step.is_over(&picture) {
                over_at = Some(Instant::now());
            }
            self.show(&picture, step, number)?;
            tokio::time::sleep(TICK).await;
        }
        let took = over_at.map_or(PATIENCE, |at| at - began);
        Ok(Played { step, took, over: over_at.is_some() })
    }

    fn act(&self, act: Act) -> Result<(), Status> {
        let key = kcm_sandbox_apiserver::ObjectKey::namespaced(NAMESPACE, NAME);
        let patch = match act {
            Act::Create { image, replicas } => {
                return self.sandbox.create(&DEPLOYMENTS, script::deployment(image, replicas)).map(drop);
            }
            Act::SetImage(image) | Act::Undo(image) => script::image_patch(image),
            Act::Scale(replicas) => serde_json::json!({ "spec": { "replicas": replicas } }),
        };
        self.sandbox.patch(&DEPLOYMENTS, &key, &patch).map(drop)
    }

    fn look(&self) -> Picture {
        let list = |resource| self.sandbox.list(resource, Some(NAMESPACE));
        let objects = Objects {
            deployments: list(&DEPLOYMENTS),
            replica_sets: list(&REPLICA_SETS),
            pods: list(&PODS),
            events: list(&EVENTS),
        };
        Picture::of(&objects, queue_depths(&self.metrics.encode()))
    }

    fn show(&mut self, picture: &Picture, step: &Step, number: usize) -> io::Result<()> {
        if !self.screen.redraws {
            return self.tell(picture);
        }
        let moment = Moment { step, number, of: STEPS.len(), elapsed: self.began.elapsed(), now: self.sandbox.now() };
        let lines = view::screen(picture, &moment, self.screen);
        let mut text = String::new();
        if self.drawn > 0 {
            // Back to the first line that was drawn.
            text = format!("\x1b[{}A", self.drawn);
        }
        for line in &lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        // Whatever was drawn beneath is of the past.
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Says what is new, in lines that stay.
    fn tell(&mut self, picture: &Picture) -> io::Result<()> {
        for event in picture.events.iter().filter(|event| !self.told.contains(event)) {
            writeln!(self.out, "{}", view::event(event))?;
        }
        self.told.clone_from(&picture.events);
        let line = view::line(picture);
        if line != self.last_line {
            writeln!(self.out, "{} {line}", view::clock(self.began.elapsed()))?;
            self.last_line = line;
        }
        self.out.flush()
    }

    fn summary(&mut self, played: &[Played]) -> Result<(), DemoError> {
        writeln!(self.out, "\nWhat you saw:")?;
        for Played { step, took, over } in played {
            let time = format!("{:.1} s", took.as_secs_f32());
            let end = if *over { step.lesson } else { "it was not over when the demo went on" };
            writeln!(self.out, "  {}\n    {time}: {end}", step.command)?;
        }
        self.out.flush()?;
        Ok(())
    }
}

/// Reads the depths of the queues from metrics in the text format.
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

    /// A pipe whose reader fails in this way.
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
    async fn a_reader_that_leaves_ends_it_and_a_terminal_that_fails_is_told() {
        let play = async |kind| {
            let screen = Screen { redraws: false, colour: false, unicode: true };
            play(&Sandbox::default(), &Metrics::new(), screen, Broken(kind)).await
        };
        assert!(play(io::ErrorKind::BrokenPipe).await.is_ok());
        assert!(matches!(play(io::ErrorKind::StorageFull).await, Err(DemoError::Write(_))));
    }

    #[test]
    fn depths_are_found_among_other_metrics() {
        let metrics = "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"deployment\"} 3\nother 1\n";
        assert_eq!(queue_depths(metrics), BTreeMap::from([("deployment".to_owned(), 3)]));
    }
}
