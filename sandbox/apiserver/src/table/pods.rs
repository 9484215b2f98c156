//! Pods and pod templates.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::phrase::{NONE, or, text_of};
use super::row::Row;

/// The conditions of the row of a pod that has ended.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let phase = pod.pointer("/status/phase")?.as_str()?;
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": phase, "message": message }]))
}

pub(super) fn readiness_gates(row: &Row<'_>) -> Value {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return NONE.into();
    }
    let open = gates.iter().filter(|gate| row.is_true(text_of(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len()).into()
}

/// The cells of a pod that depend on the statuses of its containers.
pub(super) struct Summary {
    containers: usize,
    ready: usize,
    pub(super) status: String,
    restarts: Restarts,
}

#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status["restartCount"].as_i64().unwrap_or(0);
        let finished = status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str);
        self.last = self.last.max(finished.and_then(|time| time.parse().ok()));
    }
}

/// The progress of the init containers.
#[derive(Default)]
struct Initialization {
    ready: usize,
    restarts: Restarts,
    /// Restarts of the sidecar containers.
    sidecar_restarts: Restarts,
    /// The status of the container that the pod waits for.
    holds: Option<String>,
}

impl Initialization {
    fn of(row: &Row<'_>) -> Self {
        let total = row.len("/spec/initContainers");
        let mut progress = Self::default();
        for (at, status) in row.list("/status/initContainerStatuses").iter().enumerate() {
            let is_sidecar = row
                .list("/spec/initContainers")
                .iter()
                .any(|container| container["name"] == status["name"] && is_sidecar(container));
            progress.restarts.add(status);
            if is_sidecar {
                progress.sidecar_restarts.add(status);
            }
            let terminated = state(status, "terminated");
            if terminated.is_some_and(|ended| ended["exitCode"] == 0) {
                continue;
            }
            if is_sidecar && status["started"] == true {
                progress.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waits_for = state(status, "waiting").map_or("", |waiting| text_of(waiting, "reason"));
            progress.holds = Some(match (terminated, waits_for) {
                (Some(ended), _) => format!("Init:{}", end_of(ended)),
                (None, "" | "PodInitializing") => format!("Init:{at}/{total}"),
                (None, reason) => format!("Init:{reason}"),
            });
            break;
        }
        progress
    }
}

impl Summary {
    pub(super) fn of(row: &Row<'_>) -> Self {
        let sidecars = row.list("/spec/initContainers").iter().filter(|container| is_sidecar(container)).count();
        let initialization = Initialization::of(row);
        let mut summary = Self {
            containers: row.len("/spec/containers") + sidecars,
            ready: initialization.ready,
            status: status_of_pod(row),
            restarts: initialization.restarts,
        };
        let initialized = initialization.holds.is_none() || row.is_true("Initialized");
        if let Some(hold) = initialization.holds {
            summary.status = hold;
        }
        if initialized {
            summary.restarts = initialization.sidecar_restarts;
            summary.add_containers(row);
        }
        if row.is_terminating() {
            let is_over = matches!(row.str("/status/phase"), Some("Succeeded" | "Failed"));
            if row.str("/status/reason") == Some("NodeLost") {
                "Unknown".clone_into(&mut summary.status);
            } else if !is_over {
                "Terminating".clone_into(&mut summary.status);
            }
        }
        summary
    }

    fn add_containers(&mut self, row: &Row<'_>) {
        let mut any_runs = false;
        let mut failure = None;
        // The first container decides last.
        for status in row.list("/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waits_for = state(status, "waiting").map_or("", |waiting| text_of(waiting, "reason"));
            if !waits_for.is_empty() {
                waits_for.clone_into(&mut self.status);
            } else if let Some(ended) = state(status, "terminated") {
                self.status = end_of(ended);
                if ended["exitCode"].as_i64().unwrap_or(0) != 0 {
                    failure = Some(self.status.clone());
                }
            } else if status["ready"] == true && state(status, "running").is_some() {
                any_runs = true;
                self.ready += 1;
            }
        }
        // One completed container does not complete the pod.
        if self.status == "Completed" {
            if any_runs && row.list("/status/conditions").iter().any(is_ready) {
                "Running".clone_into(&mut self.status);
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if any_runs {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }

    pub(super) fn ready(&self) -> Value {
        format!("{}/{}", self.ready, self.containers).into()
    }

    pub(super) fn restarts(&self, row: &Row<'_>) -> Value {
        let count = self.restarts.count;
        match self.restarts.last {
            Some(last) if count != 0 => format!("{count} ({} ago)", row.since_time(Some(last))).into(),
            Some(_) | None => count.to_string().into(),
        }
    }
}

/// The reason or the phase of the pod itself.
fn status_of_pod(row: &Row<'_>) -> String {
    let is_gated = |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if row.list("/status/conditions").iter().any(is_gated) {
        return "SchedulingGated".to_owned();
    }
    or(row.text("/status/reason"), row.text("/status/phase")).to_owned()
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn is_ready(condition: &Value) -> bool {
    condition["type"] == "Ready" && condition["status"] == "True"
}

/// Returns the state of a container, if it is the named state.
fn state<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status.get("state")?.get(name).filter(|state| !state.is_null())
}

/// Returns the reason for the end of a container.
fn end_of(terminated: &Value) -> String {
    let signal = terminated["signal"].as_i64().unwrap_or(0);
    match text_of(terminated, "reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        reason => reason.to_owned(),
    }
}
