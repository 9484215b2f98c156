//! The status of a pod as its kubelet writes it. Pure.
//!
//! # Upstream
//! `pkg/kubelet/status/generate.go` and `generateAPIPodStatus` of `pkg/kubelet/kubelet_pods.go`

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::lifecycle::{Container, Exit, Phase, PodRun, pull_error};
use super::plan::{ContainerPlan, Role};
use crate::dice::Dice;
use kcm_sandbox_apiserver::direct::Now;
use kcm_sandbox_apiserver::json;

/// The addresses of a pod and its node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) host: &'a str,
    /// Absent until the pod sandbox exists.
    pub(crate) address: Option<&'a str>,
}

/// Returns the pod with its current status; `None` if it is unchanged.
pub(crate) fn written(pod: &Value, run: &PodRun, place: Place<'_>, now: Now) -> Option<Value> {
    let mut status = json::at(pod, &["status"]).cloned().unwrap_or_else(|| json!({}));
    let phase = run.phase();
    let writer = Writer { run, pod, now, phase };
    let put = |status: &mut Value, field: &str, value: Value| json::map_of(status).insert(field.to_owned(), value);
    put(&mut status, "phase", json!(phase));
    if let Some(generation) = json::at(pod, &["metadata", "generation"]) {
        put(&mut status, "observedGeneration", generation.clone());
    }
    put(&mut status, "startTime", json!(stamp(now, run.since)));
    put(&mut status, "hostIP", json!(place.host));
    put(&mut status, "hostIPs", json!([{ "ip": place.host }]));
    if let Some(address) = place.address {
        put(&mut status, "podIP", json!(address));
        put(&mut status, "podIPs", json!([{ "ip": address }]));
    }
    if let Some((reason, message)) = run.failed {
        put(&mut status, "reason", json!(reason));
        put(&mut status, "message", json!(message));
    }
    let containers = writer.containers(|role| role == Role::Main);
    put(&mut status, "containerStatuses", containers.into());
    let init = writer.containers(|role| matches!(role, Role::Init | Role::Sidecar));
    if !init.is_empty() {
        put(&mut status, "initContainerStatuses", init.into());
    }
    let ephemeral = writer.containers(|role| role == Role::Ephemeral);
    if !ephemeral.is_empty() {
        put(&mut status, "ephemeralContainerStatuses", ephemeral.into());
    }
    let conditions = writer.conditions(json::list(&status, &["conditions"]), place.address.is_some());
    put(&mut status, "conditions", conditions.into());
    (pod.get("status") != Some(&status)).then(|| {
        let mut pod = pod.clone();
        json::set(&mut pod, &["status"], Some(status));
        pod
    })
}

/// Converts an elapsed time to wall-clock time.
fn stamp(now: Now, at: Duration) -> String {
    let past = now.elapsed.saturating_sub(at);
    let time = now.time.checked_sub(past).unwrap_or(now.time);
    kcm_api::time::format_seconds(time)
}

struct Writer<'a> {
    run: &'a PodRun,
    pod: &'a Value,
    now: Now,
    phase: &'static str,
}

/// A condition status with its reason.
type Verdict = Result<Option<&'static str>, (&'static str, String)>;

impl Writer<'_> {
    fn containers(&self, which: impl Fn(Role) -> bool) -> Vec<Value> {
        let parts = self.run.plan.containers.iter().zip(&self.run.containers);
        parts.filter(|(plan, _)| which(plan.role)).map(|(plan, container)| self.container(plan, container)).collect()
    }

    fn container(&self, plan: &ContainerPlan, container: &Container) -> Value {
        let succeeded = matches!(&container.phase, Phase::Exited { exit, .. } if exit.code == 0);
        let ready = match plan.role {
            Role::Main | Role::Sidecar => container.ready,
            Role::Init => container.ready || succeeded,
            Role::Ephemeral => false,
        };
        let mut status = json!({
            "name": &*plan.name, "image": &*plan.image, "imageID": "", "ready": ready,
            "restartCount": container.runs.saturating_sub(1), "started": container.started,
            "state": self.state(plan, container), "lastState": {}, "resources": {},
        });
        if let Some(exit) = &container.last {
            status["lastState"] = self.terminated(plan, exit);
        }
        if container.runs > 0 {
            let digest = Dice::new(0).hex(64, &[&plan.image]);
            let name = plan.image.split('@').next().unwrap_or_default();
            let at = name.rfind('/').map_or(0, |slash| slash + 1);
            let repository = name[at..].find(':').map_or(name, |colon| &name[..at + colon]);
            status["imageID"] = json!(format!("{repository}@sha256:{digest}"));
            status["containerID"] = json!(self.container_id(plan, container.runs));
        }
        let spec = ["containers", "initContainers", "ephemeralContainers"].into_iter().find_map(|list| {
            let all = json::list(self.pod, &["spec", list]);
            all.iter().find(|spec| json::text(spec, &["name"]) == Some(&*plan.name))
        });
        if let Some(spec) = spec {
            if let Some(resources) = json::at(spec, &["resources"]) {
                status["resources"] = resources.clone();
            }
            if let Some(requests) = json::at(spec, &["resources", "requests"]) {
                status["allocatedResources"] = requests.clone();
            }
        }
        status
    }

    fn container_id(&self, plan: &ContainerPlan, run: u32) -> String {
        let hex = Dice::new(0).hex(64, &[&self.run.plan.uid, &plan.name, &run.to_string()]);
        format!("sandbox://{hex}")
    }

    fn state(&self, plan: &ContainerPlan, container: &Container) -> Value {
        let waiting = |reason: &str, message: Option<String>| match message {
            Some(message) => json!({ "waiting": { "reason": reason, "message": message } }),
            None => json!({ "waiting": { "reason": reason } }),
        };
        match &container.phase {
            Phase::Waiting | Phase::Pulling { .. } | Phase::Creating { .. } => {
                // Kubelets report `PodInitializing` for all containers of a pod with init containers.
                let alone =
                    self.run.plan.containers.iter().all(|plan| matches!(plan.role, Role::Main | Role::Ephemeral));
                waiting(if alone { "ContainerCreating" } else { "PodInitializing" }, None)
            }
            Phase::PullFailed { backing_off: false, .. } => waiting("ErrImagePull", Some(pull_error(&plan.image))),
            Phase::PullFailed { backing_off: true, .. } => {
                let image = &plan.image;
                let message = format!("Back-off pulling image {image:?}: ErrImagePull: {}", pull_error(image));
                waiting("ImagePullBackOff", Some(message))
            }
            Phase::Malformed => {
                let message = format!("Failed to apply default image tag {:?}: couldn't parse image name", plan.image);
                waiting("InvalidImageName", Some(message))
            }
            Phase::Running { since, .. } => json!({ "running": { "startedAt": stamp(self.now, *since) } }),
            Phase::Exited { exit, .. } => self.terminated(plan, exit),
            Phase::BackOff { delay, .. } => {
                let message = format!(
                    "back-off {} restarting failed container={} pod={}",
                    go_duration(*delay),
                    plan.name,
                    pod_name(self.pod)
                );
                waiting("CrashLoopBackOff", Some(message))
            }
        }
    }

    fn terminated(&self, plan: &ContainerPlan, exit: &Exit) -> Value {
        json!({ "terminated": {
            "exitCode": exit.code, "reason": if exit.code == 0 { "Completed" } else { "Error" },
            "startedAt": stamp(self.now, exit.since), "finishedAt": stamp(self.now, exit.at),
            "containerID": self.container_id(plan, exit.run),
        } })
    }

    fn conditions(&self, old: &[Value], has_sandbox: bool) -> Vec<Value> {
        let ready = self.containers_ready();
        let gates = match &ready {
            Ok(_) => self.gates(old),
            Err(_) => ready.clone(),
        };
        let completed = (self.phase == "Succeeded").then_some("PodCompleted");
        let initialized = if completed.is_some() || self.run.is_initialized() {
            Ok(completed)
        } else {
            let names = self.names(|plan, container| match plan.role {
                Role::Init => !matches!(&container.phase, Phase::Exited { exit, .. } if exit.code == 0),
                Role::Sidecar => !container.started,
                Role::Main | Role::Ephemeral => false,
            });
            Err(("ContainersNotInitialized", format!("containers with incomplete status: [{names}]")))
        };
        let over = matches!(self.phase, "Succeeded" | "Failed") || self.run.is_stopped();
        let sandbox = if has_sandbox && !over { Ok(None) } else { Err(("", String::new())) };
        let mut conditions: Vec<Value> = Vec::with_capacity(5);
        for (kind, verdict) in [
            ("PodReadyToStartContainers", sandbox),
            ("Initialized", initialized),
            ("Ready", gates),
            ("ContainersReady", ready),
            ("PodScheduled", Ok(None)),
        ] {
            conditions.push(self.condition(kind, verdict, old));
        }
        let own = |condition: &&Value| !conditions.iter().any(|written| written.get("type") == condition.get("type"));
        let others: Vec<Value> = old.iter().filter(own).cloned().collect();
        others.into_iter().chain(conditions).collect()
    }

    fn condition(&self, kind: &str, verdict: Verdict, old: &[Value]) -> Value {
        let old = old.iter().find(|condition| json::text(condition, &["type"]) == Some(kind));
        let is = if verdict.is_ok() { "True" } else { "False" };
        let same = old.filter(|old| json::text(old, &["status"]) == Some(is));
        let since = same.and_then(|old| json::text(old, &["lastTransitionTime"])).map(str::to_owned);
        let mut condition = Map::new();
        condition.insert("type".into(), json!(kind));
        condition.insert("status".into(), json!(is));
        condition.insert("lastProbeTime".into(), Value::Null);
        condition.insert("lastTransitionTime".into(), json!(since.unwrap_or_else(|| self.now.stamp(0))));
        if let Some(generation) = json::at(self.pod, &["metadata", "generation"]) {
            condition.insert("observedGeneration".into(), generation.clone());
        }
        let (reason, message) = match verdict {
            Ok(reason) => (reason.unwrap_or_default(), String::new()),
            Err((reason, message)) => (reason, message),
        };
        if !reason.is_empty() {
            condition.insert("reason".into(), json!(reason));
        }
        if !message.is_empty() {
            condition.insert("message".into(), json!(message));
        }
        condition.into()
    }

    fn containers_ready(&self) -> Verdict {
        match self.phase {
            "Succeeded" => return Err(("PodCompleted", String::new())),
            "Failed" => return Err(("PodFailed", String::new())),
            _ => {}
        }
        let names = self.names(|plan, container| matches!(plan.role, Role::Main | Role::Sidecar) && !container.ready);
        if names.is_empty() {
            return Ok(None);
        }
        Err(("ContainersNotReady", format!("containers with unready status: [{names}]")))
    }

    fn gates(&self, conditions: &[Value]) -> Verdict {
        let mut problems = Vec::new();
        for gate in json::list(self.pod, &["spec", "readinessGates"]) {
            let gate = json::text(gate, &["conditionType"]).unwrap_or_default();
            let found = conditions.iter().find(|condition| json::text(condition, &["type"]) == Some(gate));
            match found.map(|condition| json::text(condition, &["status"]).unwrap_or_default()) {
                Some("True") => {}
                Some(is) => {
                    problems.push(format!("the status of pod readiness gate {gate:?} is not \"True\", but {is}"));
                }
                None => {
                    problems.push(format!("corresponding condition of pod readiness gate {gate:?} does not exist."));
                }
            }
        }
        if problems.is_empty() { Ok(None) } else { Err(("ReadinessGatesNotReady", problems.join(", "))) }
    }

    fn names(&self, which: impl Fn(&ContainerPlan, &Container) -> bool) -> String {
        let parts = self.run.plan.containers.iter().zip(&self.run.containers);
        let names = parts.filter(|(plan, container)| which(plan, container)).map(|(plan, _)| &*plan.name);
        names.collect::<Vec<_>>().join(" ")
    }
}

/// Formats `name_namespace(uid)`, the pod format of kubelet logs.
pub(crate) fn pod_name(pod: &Value) -> String {
    let namespace = json::text(pod, &["metadata", "namespace"]).unwrap_or_default();
    format!("{}_{namespace}({})", json::name(pod), json::uid(pod))
}

/// Formats whole seconds like Go: `10s`, `1m20s`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}
