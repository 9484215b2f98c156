use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::behaviour::PodRules;
use crate::kubelet::plan;

/// Runs a pod for a number of seconds, and records each change with its time: `3.5 Running main=running,ready`.
struct Play {
    run: PodRun,
    images: RefCell<BTreeSet<Box<str>>>,
    now: Duration,
    seen: Vec<String>,
}

fn plan_of(pod: &Value) -> PodPlan {
    plan::read(pod, &PodRules::default()).0
}

#[test]
fn an_ephemeral_container_starts_beside_the_others_and_never_again() {
    let mut pod = json!({ "spec": { "containers": [{ "name": "main", "image": "web:1" }] } });
    let mut play = Play::new(&pod);
    play.pass(10);
    pod["spec"]["ephemeralContainers"] = json!([{ "name": "debugger", "image": "busybox" }]);
    play.act(|run, environment| run.replan(plan_of(&pod), environment));
    play.pass(10);
    assert_eq!(play.seen.last().map(String::as_str), Some("Running main=ready debugger=ready"));
    play.run.containers[1].exit(play.now, 1);
    play.pass(60);
    assert_eq!(play.seen.last().map(String::as_str), Some("Running main=ready debugger=exited(1)"));
}

impl Play {
    fn new(pod: &Value) -> Self {
        let now = Duration::from_secs(100);
        Self { run: PodRun::new(plan_of(pod), now), images: RefCell::default(), now, seen: Vec::new() }
    }

    fn act(&mut self, act: impl FnOnce(&mut PodRun, &Environment<'_>) -> Effects) {
        let images = self.images.borrow().clone();
        let has_image: &dyn Fn(&str) -> bool = &|image| images.contains(image);
        let environment = Environment { now: self.now, dice: Dice::new(1), has_image, pod: "web_default(u)" };
        let effects = act(&mut self.run, &environment);
        self.images.borrow_mut().extend(effects.pulled);
    }

    /// Advances time until nothing is due, or for a number of seconds.
    fn pass(&mut self, seconds: u64) -> &mut Self {
        let end = self.now + Duration::from_secs(seconds);
        loop {
            self.act(PodRun::step);
            let seen = self.describe();
            if self.seen.last() != Some(&seen) {
                self.seen.push(seen);
            }
            match self.run.next() {
                Some(next) if next <= end => self.now = self.now.max(next),
                Some(_) | None => break,
            }
        }
        self.now = end;
        self
    }

    fn describe(&self) -> String {
        let parts = self.run.plan.containers.iter().zip(&self.run.containers);
        let parts = parts.map(|(plan, container)| {
            let phase = match &container.phase {
                Phase::Waiting => "waiting".to_owned(),
                Phase::Pulling { .. } => "pulling".to_owned(),
                Phase::Creating { .. } => "creating".to_owned(),
                Phase::PullFailed { backing_off, .. } => if *backing_off { "backoff" } else { "failed" }.to_owned(),
                Phase::Malformed => "malformed".to_owned(),
                Phase::Running { .. } if container.ready => "ready".to_owned(),
                Phase::Running { .. } => "running".to_owned(),
                Phase::Exited { exit, .. } => format!("exited({})", exit.code),
                Phase::BackOff { delay, .. } => format!("crashed({})", delay.as_secs()),
            };
            format!("{}={phase}", plan.name)
        });
        format!("{} {}", self.run.phase(), parts.collect::<Vec<_>>().join(" "))
    }
}

fn pod(phrase: &str) -> Value {
    json!({
        "metadata": { "uid": "u", "annotations": { "sandbox/pod": phrase } },
        "spec": { "containers": [{ "name": "m", "image": "a:1" }] },
    })
}

fn with(mut pod: Value, field: &str, value: Value) -> Value {
    pod["spec"][field] = value;
    pod
}

#[test]
fn lifecycles_follow_the_specified_behaviour() {
    let started = ["Pending m=pulling", "Pending m=creating"];
    let never = |phrase: &str| with(pod(phrase), "restartPolicy", json!("Never"));
    for (name, pod, rest) in [
        ("nothing said", pod(""), vec!["Running m=ready"]),
        ("ready later", pod("ready=5s"), vec!["Running m=running", "Running m=ready"]),
        ("never ready", pod("ready=never"), vec!["Running m=running"]),
        ("finishes", never("finish"), vec!["Running m=ready", "Succeeded m=exited(0)"]),
        ("fails", never("exit=7"), vec!["Running m=ready", "Failed m=exited(7)"]),
        ("crashes once", pod("crash times=1"), vec!["Running m=ready", "Running m=exited(1)", "Running m=ready"]),
        (
            "crashes twice",
            pod("crash times=2"),
            vec![
                "Running m=ready",
                "Running m=exited(1)",
                "Running m=ready",
                "Running m=exited(1)",
                "Running m=crashed(10)",
                "Running m=ready",
            ],
        ),
        (
            "runs into its deadline",
            with(pod(""), "activeDeadlineSeconds", json!(30)),
            vec!["Running m=ready", "Failed m=exited(137)"],
        ),
    ] {
        let mut play = Play::new(&pod);
        play.pass(100);
        assert_eq!(play.seen[..2], started, "{name}");
        assert_eq!(play.seen[2..], rest, "{name}");
    }
}

#[test]
fn back_off_doubles_to_five_minutes_and_resets_after_a_long_run() {
    let mut play = Play::new(&pod("crash"));
    play.pass(3_600);
    let delays = |play: &Play| -> Vec<String> {
        let crashed = play.seen.iter().filter_map(|seen| seen.split("crashed(").nth(1));
        crashed.map(|seen| seen.trim_end_matches(')').to_owned()).collect()
    };
    assert_eq!(delays(&play)[..8], ["10", "20", "40", "80", "160", "300", "300", "300"]);

    let mut play = Play::new(&pod("crash after=11m"));
    play.pass(7_200);
    assert_eq!(delays(&play), Vec::<String>::new(), "a container that runs for long enough restarts at once");
}

#[test]
fn a_failed_pull_is_retried_without_limit() {
    let mut play = Play::new(&pod("pull=fails"));
    play.pass(3_600);
    assert_eq!(play.seen[..3], ["Pending m=pulling", "Pending m=failed", "Pending m=backoff"]);
    assert!(play.seen.len() > 20, "{:?}", play.seen);
    let mut repaired = pod("");
    repaired["spec"]["containers"][0]["image"] = json!("a:2");
    play.act(|run, environment| run.replan(plan_of(&repaired), environment));
    play.pass(10);
    assert_eq!(play.seen.last().map(String::as_str), Some("Running m=ready"));
}

#[test]
fn init_containers_run_first_one_by_one() {
    let init = json!([{ "name": "i", "image": "a:1" }, { "name": "s", "image": "a:1", "restartPolicy": "Always" }]);
    let mut play = Play::new(&with(pod(""), "initContainers", init));
    play.pass(60);
    assert_eq!(
        play.seen,
        [
            "Pending i=pulling s=waiting m=waiting",
            "Pending i=creating s=waiting m=waiting",
            "Pending i=ready s=waiting m=waiting",
            "Pending i=exited(0) s=creating m=waiting",
            "Pending i=exited(0) s=ready m=creating",
            "Running i=exited(0) s=ready m=ready",
        ]
    );
}

#[test]
fn an_init_container_that_fails_fails_the_pod_or_is_run_again() {
    for (policy, last) in [("Never", "Failed i=exited(1) m=waiting"), ("Always", "Running i=exited(0) m=ready")] {
        let mut pod = with(pod(""), "initContainers", json!([{ "name": "i", "image": "a:1" }]));
        pod["spec"]["restartPolicy"] = json!(policy);
        pod["metadata"]["annotations"]["sandbox/container.i"] = json!("crash times=1");
        let mut play = Play::new(&pod);
        play.pass(60);
        assert_eq!(play.seen.last().map(String::as_str), Some(last), "{policy}");
    }
}

#[test]
fn sidecars_end_with_the_containers() {
    let side = json!([{ "name": "s", "image": "a:1", "restartPolicy": "Always" }]);
    let mut play = Play::new(&with(with(pod("finish"), "initContainers", side), "restartPolicy", json!("Never")));
    play.pass(60);
    assert_eq!(play.seen.last().map(String::as_str), Some("Succeeded s=exited(0) m=exited(0)"));
}

#[test]
fn stopping_takes_the_specified_time_within_the_grace_period() {
    let grace = 30;
    for (phrase, before, after) in [
        ("stop=5s", 4, Some((2, "Succeeded m=exited(0)"))),
        ("stop=60s", 29, Some((2, "Failed m=exited(137)"))),
        ("stop=never", 29, Some((2, "Failed m=exited(137)"))),
        ("stop=stuck", 3_600, None),
    ] {
        let mut play = Play::new(&pod(phrase));
        play.pass(10);
        play.act(|run, environment| run.stop(Duration::from_secs(grace), environment));
        play.pass(before);
        assert!(!play.run.is_stopped(), "{phrase}");
        if let Some((more, last)) = after {
            play.pass(more);
            assert!(play.run.is_stopped(), "{phrase}");
            assert_eq!(play.seen.last().map(String::as_str), Some(last), "{phrase}");
        }
    }
}

#[test]
fn a_shorter_grace_ends_a_pod_sooner() {
    let mut play = Play::new(&pod("stop=never"));
    play.pass(10);
    play.act(|run, environment| run.stop(Duration::from_mins(5), environment));
    play.pass(10);
    play.act(|run, environment| run.stop(Duration::from_secs(1), environment));
    play.pass(2);
    assert!(play.run.is_stopped());
}
