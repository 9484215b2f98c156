//! The plan of a pod: its containers and their behaviour, from its spec, annotations and rules. Pure.

use std::time::Duration;

use kcm_api::Labels;
use serde_json::Value;

use crate::behaviour::{self, Behaviour, End, PodRules, Pull, Range, Ready, Stop, Subject};
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::json::labels_of;

/// Annotation with the behaviour of all containers of a pod.
const POD: &str = "sandbox/pod";
/// Prefix of annotations with the behaviour of one container; its name follows.
const CONTAINER: &str = "sandbox/container.";

const START: Range = Range::millis(500, 1_500);
const PULL: Range = Range::millis(500, 2_500);
const STOP: Range = Range::millis(300, 1_500);
/// Default behaviour of init containers.
const INIT: End = End::Exits { code: 0, after: Range::millis(500, 1_500), times: None };
/// Default behaviour of containers of jobs.
const JOB: End = End::Exits { code: 0, after: Range::millis(3_000, 6_000), times: None };

/// The role of a container in its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Init,
    /// A restartable init container.
    Sidecar,
    Main,
    /// An ephemeral container, added to a running pod; it never restarts.
    Ephemeral,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "Always" => Some(Self::Always),
            "OnFailure" => Some(Self::OnFailure),
            "Never" => Some(Self::Never),
            _ => None,
        }
    }

    pub(crate) const fn after(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }
}

/// The plan of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerPlan {
    pub(crate) name: Box<str>,
    pub(crate) image: Box<str>,
    pub(crate) malformed: bool,
    pub(crate) pull_always: bool,
    pub(crate) role: Role,
    pub(crate) restart: Restart,
    pub(crate) start: Range,
    pub(crate) pull: Pull,
    /// Time from running to the success of the startup probe.
    pub(crate) startup: Duration,
    /// Time from running to the success of the readiness probe.
    pub(crate) probe: Duration,
    pub(crate) ready: Option<Ready>,
    pub(crate) end: End,
    pub(crate) stop: Stop,
}

/// The plan of a pod; init containers and sidecars come first, ephemeral containers last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodPlan {
    pub(crate) uid: Box<str>,
    pub(crate) containers: Vec<ContainerPlan>,
    pub(crate) deadline: Option<Duration>,
}

/// Reads the plan of a pod, and the errors in its annotations.
pub(crate) fn read(pod: &Value, rules: &PodRules) -> (PodPlan, Vec<String>) {
    let mut complaints = Vec::new();
    let restart = json::text(pod, &["spec", "restartPolicy"]).and_then(Restart::parse).unwrap_or(Restart::Always);
    let of_job = json::list(pod, &["metadata", "ownerReferences"])
        .iter()
        .any(|owner| owner["controller"] == true && owner["kind"] == "Job");
    let reading = Reading { pod, rules, labels: labels_of(pod), restart, of_job };
    let mut containers = Vec::new();
    for container in json::list(pod, &["spec", "initContainers"]) {
        let sidecar = json::text(container, &["restartPolicy"]) == Some("Always");
        let role = if sidecar { Role::Sidecar } else { Role::Init };
        containers.push(reading.container(container, role, &mut complaints));
    }
    for container in json::list(pod, &["spec", "containers"]) {
        containers.push(reading.container(container, Role::Main, &mut complaints));
    }
    for container in json::list(pod, &["spec", "ephemeralContainers"]) {
        containers.push(reading.container(container, Role::Ephemeral, &mut complaints));
    }
    let deadline = json::at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_u64);
    let plan = PodPlan { uid: json::uid(pod).into(), containers, deadline: deadline.map(Duration::from_secs) };
    complaints.dedup();
    (plan, complaints)
}

struct Reading<'a> {
    pod: &'a Value,
    rules: &'a PodRules,
    labels: Labels,
    restart: Restart,
    of_job: bool,
}

impl Reading<'_> {
    fn container(&self, container: &Value, role: Role, complaints: &mut Vec<String>) -> ContainerPlan {
        let name = json::text(container, &["name"]).unwrap_or_default();
        let image = json::text(container, &["image"]).unwrap_or_default();
        let namespace = json::text(self.pod, &["metadata", "namespace"]).unwrap_or_default();
        let mut said = self.annotation(&format!("{CONTAINER}{name}"), complaints);
        if role == Role::Main {
            said = said.or(self.annotation(POD, complaints));
        }
        let subject = Subject { namespace, labels: &self.labels, container: name, image };
        let said = said.or(self.rules.behaviour(subject)).or(behaviour::of_image(image));
        let restart = match role {
            Role::Sidecar => Restart::Always,
            // Init containers that have succeeded do not run again.
            Role::Init if self.restart == Restart::Always => Restart::OnFailure,
            Role::Init => self.restart,
            Role::Ephemeral => Restart::Never,
            Role::Main => json::text(container, &["restartPolicy"]).and_then(Restart::parse).unwrap_or(self.restart),
        };
        let startup = probe_delay(container, "startupProbe").unwrap_or_default();
        ContainerPlan {
            name: name.into(),
            image: image.into(),
            malformed: behaviour::is_malformed_image(image),
            pull_always: json::text(container, &["imagePullPolicy"]) == Some("Always"),
            role,
            restart,
            start: said.start.unwrap_or(START),
            pull: said.pull.unwrap_or(Pull::Takes(PULL)),
            startup,
            probe: probe_delay(container, "readinessProbe").unwrap_or_default().max(startup),
            ready: said.ready,
            end: said.end.unwrap_or(match role {
                Role::Init => INIT,
                Role::Main if self.of_job => JOB,
                Role::Main | Role::Sidecar | Role::Ephemeral => End::Never,
            }),
            stop: said.stop.unwrap_or(Stop::After(STOP)),
        }
    }

    fn annotation(&self, name: &str, complaints: &mut Vec<String>) -> Behaviour {
        let phrase = json::text(self.pod, &["metadata", "annotations", name]).unwrap_or_default();
        phrase.parse().unwrap_or_else(|error| {
            complaints.push(format!("Annotation {name} is ignored: {error}"));
            Behaviour::default()
        })
    }
}

/// Returns the time until a probe that always succeeds reaches its success threshold.
fn probe_delay(container: &Value, probe: &str) -> Option<Duration> {
    let probe = json::at(container, &[probe])?;
    let number = |field: &str, default| json::at(probe, &[field]).and_then(Value::as_u64).unwrap_or(default);
    let rounds = number("successThreshold", 1).saturating_sub(1);
    // The first probe runs shortly after the start.
    let seconds = number("initialDelaySeconds", 0).saturating_add(rounds.saturating_mul(number("periodSeconds", 10)));
    Some(Duration::from_secs(seconds.min(86_400)) + Duration::from_millis(500))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(pod: &Value, rules: &str) -> (PodPlan, Vec<String>) {
        read(pod, &PodRules::parse(rules).expect("the rules are well formed"))
    }

    #[test]
    fn annotations_precede_rules_and_rules_precede_tags() {
        let pod = json!({
            "metadata": { "annotations": { "sandbox/pod": "start=1s", "sandbox/container.b": "start=2s" } },
            "spec": { "containers": [
                { "name": "a", "image": "web:unready" }, { "name": "b", "image": "web:bad" }, { "name": "c", "image": "web:1" },
            ] },
        });
        let (plan, _) = plan(&pod, "pods:\n- do: start=9s pull=3s\n- container: c\n  do: ready=never\n");
        let starts: Vec<u64> = plan.containers.iter().map(|container| container.start.min.as_secs()).collect();
        assert_eq!(starts, [1, 2, 1]);
        assert!(plan.containers.iter().all(|container| matches!(container.pull, Pull::Takes(_))));
        let ready: Vec<bool> = plan.containers.iter().map(|container| container.ready.is_none()).collect();
        assert_eq!(ready, [false, true, false]);
    }

    #[test]
    fn the_role_of_a_container_decides_its_restarts() {
        let pod = |policy: &str| {
            json!({ "spec": {
                "restartPolicy": policy,
                "initContainers": [
                    { "name": "i", "image": "a" }, { "name": "s", "image": "a", "restartPolicy": "Always" },
                ],
                "containers": [{ "name": "m", "image": "a" }],
            } })
        };
        for (policy, init, main) in [
            ("Always", Restart::OnFailure, Restart::Always),
            ("OnFailure", Restart::OnFailure, Restart::OnFailure),
            ("Never", Restart::Never, Restart::Never),
        ] {
            let (plan, _) = plan(&pod(policy), "");
            let restarts: Vec<Restart> = plan.containers.iter().map(|container| container.restart).collect();
            assert_eq!(restarts, [init, Restart::Always, main], "{policy}");
        }
    }

    #[test]
    fn containers_of_jobs_finish_by_themselves() {
        let pod = |kind: &str| {
            json!({
                "metadata": { "ownerReferences": [{ "kind": kind, "controller": true }] },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "m", "image": "a" }] },
            })
        };
        assert_eq!(plan(&pod("Job"), "").0.containers[0].end, JOB);
        assert_eq!(plan(&pod("ReplicaSet"), "").0.containers[0].end, End::Never);
    }

    #[test]
    fn probes_delay_readiness() {
        let pod = json!({ "spec": { "containers": [{
            "name": "m", "image": "a",
            "startupProbe": { "initialDelaySeconds": 20 },
            "readinessProbe": { "initialDelaySeconds": 5, "successThreshold": 2, "periodSeconds": 3 },
        }] } });
        let container = &plan(&pod, "").0.containers[0];
        assert_eq!((container.startup.as_millis(), container.probe.as_millis()), (20_500, 20_500));
    }

    #[test]
    fn invalid_annotations_are_reported() {
        let pod = json!({
            "metadata": { "annotations": { "sandbox/pod": "crahs" } },
            "spec": { "containers": [{ "name": "m", "image": "a" }, { "name": "n", "image": "a" }] },
        });
        let (_, complaints) = plan(&pod, "");
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("Annotation sandbox/pod is ignored: unknown word \"crahs\""));
    }
}
