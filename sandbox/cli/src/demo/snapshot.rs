//! [`Snapshot`]: the cluster state that the demo displays, read from objects. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// The displayed state of a cluster at one point in time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) deployments: Vec<Deployment>,
    pub(crate) pods: BTreeMap<PodState, usize>,
    /// Sorted by time, latest last.
    pub(crate) events: Vec<Event>,
    /// Queue depths by queue name.
    pub(crate) queues: BTreeMap<String, u64>,
}

/// A deployment and its replica sets, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deployment {
    pub(crate) name: String,
    pub(crate) desired: u64,
    pub(crate) ready: u64,
    pub(crate) updated: u64,
    pub(crate) total: u64,
    /// Whether `observedGeneration` equals `generation`.
    pub(crate) observed: bool,
    pub(crate) sets: Vec<ReplicaSet>,
}

/// A replica set that has or wants pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReplicaSet {
    pub(crate) name: String,
    pub(crate) revision: u64,
    pub(crate) image: String,
    pub(crate) desired: u64,
    pub(crate) ready: u64,
    /// Pods that exist and are not ready.
    pub(crate) coming: u64,
}

/// The state of a pod, in display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PodState {
    Ready,
    Starting,
    Waiting,
    Failing,
    Terminating,
}

impl PodState {
    pub(crate) const ALL: [Self; 5] = [Self::Ready, Self::Starting, Self::Waiting, Self::Failing, Self::Terminating];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Starting => "starting",
            Self::Waiting => "waiting for a node",
            Self::Failing => "failing",
            Self::Terminating => "terminating",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Timestamp,
    pub(crate) warning: bool,
    /// Kind and name, as `Pod/web-1`.
    pub(crate) object: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) count: u64,
}

/// The objects that a snapshot is computed from.
pub(crate) struct Objects {
    pub(crate) deployments: Vec<Value>,
    pub(crate) replica_sets: Vec<Value>,
    pub(crate) pods: Vec<Value>,
    pub(crate) events: Vec<Value>,
}

/// Number of events that are kept.
const EVENTS: usize = 12;

impl Snapshot {
    pub(crate) fn of(objects: &Objects, queues: BTreeMap<String, u64>) -> Self {
        let mut states = BTreeMap::new();
        for pod in &objects.pods {
            *states.entry(state_of(pod)).or_default() += 1;
        }
        let deployments = objects.deployments.iter().map(|found| deployment(found, objects)).collect();
        let mut events: Vec<Event> = objects.events.iter().filter_map(parse_event).collect();
        // Normal kubelet events would hide the events of the controllers.
        events.retain(|event| event.warning || !event.object.starts_with("Pod/"));
        events.sort_by_key(|event| event.at);
        let events = events.split_off(events.len().saturating_sub(EVENTS));
        Self { deployments, pods: states, events, queues }
    }

    pub(crate) fn count(&self, state: PodState) -> usize {
        self.pods.get(&state).copied().unwrap_or_default()
    }
}

fn deployment(found: &Value, objects: &Objects) -> Deployment {
    let uid = text(found, "/metadata/uid");
    let mut sets: Vec<ReplicaSet> =
        objects.replica_sets.iter().filter(|set| owner(set) == uid).map(|set| replica_set(set, objects)).collect();
    sets.retain(|set| set.desired + set.ready + set.coming > 0);
    sets.sort_by_key(|set| set.revision);
    Deployment {
        name: text(found, "/metadata/name").to_owned(),
        desired: number(found, "/spec/replicas"),
        ready: number(found, "/status/readyReplicas"),
        updated: number(found, "/status/updatedReplicas"),
        total: number(found, "/status/replicas"),
        observed: number(found, "/status/observedGeneration") == number(found, "/metadata/generation"),
        sets,
    }
}

fn replica_set(found: &Value, objects: &Objects) -> ReplicaSet {
    let uid = text(found, "/metadata/uid");
    let own = || objects.pods.iter().filter(|pod| owner(pod) == uid);
    let count = |wanted: fn(PodState) -> bool| own().filter(|pod| wanted(state_of(pod))).count() as u64;
    ReplicaSet {
        name: text(found, "/metadata/name").to_owned(),
        revision: text(found, "/metadata/annotations/deployment.kubernetes.io~1revision").parse().unwrap_or(0),
        image: text(found, "/spec/template/spec/containers/0/image").to_owned(),
        desired: number(found, "/spec/replicas"),
        ready: count(|state| state == PodState::Ready),
        coming: count(|state| !matches!(state, PodState::Ready | PodState::Terminating)),
    }
}

/// Computes the state of a pod.
fn state_of(pod: &Value) -> PodState {
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return PodState::Terminating;
    }
    if text(pod, "/spec/nodeName").is_empty() {
        return PodState::Waiting;
    }
    let mut conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    if conditions.any(|it| text(it, "/type") == "Ready" && text(it, "/status") == "True") {
        return PodState::Ready;
    }
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let stuck = statuses.into_iter().flatten().any(|status| {
        let reason = text(status, "/state/waiting/reason");
        reason.ends_with("BackOff") || reason.starts_with("Err")
    });
    if stuck || text(pod, "/status/phase") == "Failed" { PodState::Failing } else { PodState::Starting }
}

fn parse_event(event: &Value) -> Option<Event> {
    let time = ["/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let at = time.iter().find_map(|path| text(event, path).parse().ok())?;
    Some(Event {
        at,
        warning: text(event, "/type") == "Warning",
        object: format!("{}/{}", text(event, "/involvedObject/kind"), text(event, "/involvedObject/name")),
        reason: text(event, "/reason").to_owned(),
        message: text(event, "/message").replace('\n', " "),
        count: number(event, "/count").max(1),
    })
}

/// Returns the uid of the controlling owner, or an empty string.
fn owner(object: &Value) -> &str {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    owner.map_or("", |owner| text(owner, "/uid"))
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, path: &str) -> u64 {
    object.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_state_follows_from_its_status() {
        let rows = [
            (json!({}), PodState::Waiting),
            (json!({ "spec": { "nodeName": "node-1" } }), PodState::Starting),
            (
                json!({ "spec": { "nodeName": "node-1" }, "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
                PodState::Ready,
            ),
            (
                json!({ "spec": { "nodeName": "node-1" },
                        "status": { "containerStatuses": [{ "state": { "waiting": { "reason": "ImagePullBackOff" } } }] } }),
                PodState::Failing,
            ),
            (json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }), PodState::Terminating),
        ];
        for (pod, expected) in rows {
            assert_eq!(state_of(&pod), expected, "{pod}");
        }
    }

    #[test]
    fn a_deployment_lists_its_non_empty_replica_sets_by_revision() {
        let set = |name: &str, revision: &str, replicas: u64, of: &str| {
            json!({
                "metadata": {
                    "name": name, "uid": name,
                    "annotations": { "deployment.kubernetes.io/revision": revision },
                    "ownerReferences": [{ "uid": of, "controller": true }],
                },
                "spec": { "replicas": replicas, "template": { "spec": { "containers": [{ "image": "shop:1" }] } } },
            })
        };
        let objects = Objects {
            deployments: vec![json!({ "metadata": { "name": "web", "uid": "u" }, "spec": { "replicas": 3 } })],
            replica_sets: vec![
                set("new", "10", 1, "u"),
                set("old", "9", 2, "u"),
                set("gone", "8", 0, "u"),
                set("other", "1", 1, "v"),
            ],
            pods: vec![],
            events: vec![],
        };
        let snapshot = Snapshot::of(&objects, BTreeMap::new());
        let names: Vec<&str> = snapshot.deployments[0].sets.iter().map(|set| set.name.as_str()).collect();
        assert_eq!(names, ["old", "new"]);
    }
}
