//! The log of a simulated container: its start and end. Pure.

use serde_json::Value;

use crate::json::{self, at, list, text};
use crate::status::Status;

const STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

/// Returns the log of a container, or of the only one if none is named; `previous` selects the previous run.
///
/// # Errors
/// 400 for a container that does not exist, is not named among several, or has not started.
///
/// # Upstream
/// `LogLocation` of `pkg/registry/core/pod/strategy.go`, for the errors
pub(crate) fn of(pod: &Value, container: Option<&str>, previous: bool) -> Result<String, Status> {
    let name = json::name(pod);
    let named = |container: &Value| text(container, &["name"]).unwrap_or_default().to_owned();
    let main: Vec<String> = list(pod, &["spec", "containers"]).iter().map(named).collect();
    let default = text(pod, &["metadata", "annotations", "kubectl.kubernetes.io/default-container"]);
    let container = match (container.or(default), main.as_slice()) {
        (Some(container), _) => container,
        (None, [only]) => only,
        (None, several) => {
            return Err(Status::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                several.join(" ")
            )));
        }
    };
    let all = ["containers", "initContainers", "ephemeralContainers"];
    if !all.iter().flat_map(|part| list(pod, &["spec", part])).any(|spec| named(spec) == container) {
        return Err(Status::bad_request(format!("container {container} is not valid for pod {name}")));
    }
    let statuses = STATUSES.iter().flat_map(|part| list(pod, &["status", part]));
    let status = statuses.into_iter().find(|status| named(status) == container).unwrap_or(&Value::Null);
    let restarts = at(status, &["restartCount"]).and_then(Value::as_i64).unwrap_or(0);
    let (last, state) = (at(status, &["lastState", "terminated"]), at(status, &["state"]).unwrap_or(&Value::Null));
    let run = if previous { last } else { at(state, &["running"]).or(at(state, &["terminated"])).or(last) };
    let Some(run) = run else {
        let why = text(state, &["waiting", "reason"]).unwrap_or("ContainerCreating");
        return Err(Status::bad_request(if previous {
            format!("previous terminated container {container:?} in pod {name:?} not found")
        } else {
            format!("container {container:?} in pod {name:?} is waiting to start: {why}")
        }));
    };
    let time = |field: &str| text(run, &[field]).unwrap_or_default();
    let end = at(run, &["exitCode"]).map_or_else(String::new, |code| {
        let finished = time("finishedAt");
        format!("{finished} exited with code {code}\n")
    });
    let started = time("startedAt");
    Ok(format!(
        "the sandbox runs no programs: this is what container {container} of pod {name} would do\n\
         {started} started, after {restarts} restarts\n{end}"
    ))
}
