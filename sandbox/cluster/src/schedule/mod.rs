//! The scheduler: binds pods to nodes, or sets their `PodScheduled` condition.

mod fit;
mod placed;
mod queue;
mod wants;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use serde_json::{Value, json};

use self::fit::Node;
use self::placed::Placed;
use self::queue::Queue;
pub(crate) use self::wants::{taint, tolerates, toleration};
use crate::change::Change;
use crate::dice::Dice;
use crate::event_recorder::{EventRecorder, Note, Reporter};
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::{NODES, PODS};

const NAME: &str = "default-scheduler";
const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// The reason why a pod has no node.
#[derive(Debug)]
enum Verdict {
    Unschedulable(Arc<str>),
    Gated,
}

/// Binds pods to nodes, by priority, then by age.
#[derive(Debug)]
pub(crate) struct Scheduler {
    nodes: BTreeMap<Arc<str>, Node>,
    placed: Placed,
    queue: Queue,
    to_report: VecDeque<(ObjectKey, Verdict)>,
    dice: Dice,
}

impl Scheduler {
    pub(crate) fn new(dice: Dice) -> Self {
        Self {
            nodes: BTreeMap::new(),
            placed: Placed::default(),
            queue: Queue::default(),
            to_report: VecDeque::new(),
            dice,
        }
    }

    pub(crate) fn observe(&mut self, change: &Change) {
        if *change.resource == NODES {
            self.observe_node(change);
        } else if *change.resource == PODS {
            self.observe_pod(change);
        }
    }

    fn observe_node(&mut self, change: &Change) {
        let name: Arc<str> = change.key.name().into();
        // A node without a reported capacity is ignored.
        let Some(new) = change.new.filter(|new| json::at(new, &["status", "allocatable"]).is_some()) else {
            self.nodes.remove(&name);
            return;
        };
        let helps = if let Some(node) = self.nodes.get_mut(&name) {
            node.update(new)
        } else {
            let mut node = Node::new(new);
            self.placed.of_node(&name).for_each(|wants| node.take(wants));
            self.nodes.insert(name, node);
            true
        };
        if helps {
            self.queue.unblock();
        }
    }

    fn observe_pod(&mut self, change: &Change) {
        let key = change.key;
        let live =
            change.new.filter(|pod| !matches!(json::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed")));
        let Some(pod) = live else {
            self.queue.remove(key);
            if self.remove_placed(key) {
                self.queue.unblock();
            }
            return;
        };
        let node = json::text(pod, &["spec", "nodeName"]).filter(|node| !node.is_empty());
        let same = || {
            let as_before = |path: &[&str]| change.old.is_some_and(|old| old.at(path).as_ref() == json::at(pod, path));
            as_before(&["spec"]) && as_before(&["metadata", "labels"])
        };
        let Some(node) = node else {
            self.remove_placed(key);
            self.observe_waiting(key, pod, same());
            return;
        };
        self.queue.remove(key);
        if self.placed.get(key).is_some_and(|(on, _)| **on == *node) && same() {
            return;
        }
        let wants = Arc::new(wants::read(pod));
        if self.placed.get(key).is_none_or(|(on, known)| **on != *node || *known != wants) {
            self.remove_placed(key);
            self.place(key, &node.into(), &wants);
        }
    }

    fn observe_waiting(&mut self, key: &ObjectKey, pod: &Value, same: bool) {
        let mine = json::text(pod, &["spec", "schedulerName"]).is_none_or(|name| name == NAME);
        if !mine || json::is_terminating(pod) {
            self.queue.remove(key);
            return;
        }
        if !json::list(pod, &["spec", "schedulingGates"]).is_empty() {
            self.queue.remove(key);
            if !same {
                self.to_report.push_back((key.clone(), Verdict::Gated));
            }
            return;
        }
        if same && self.queue.get(key).is_some() {
            return;
        }
        let priority = json::at(pod, &["spec", "priority"]).and_then(Value::as_i64).unwrap_or(0);
        let wants = wants::read(pod);
        let shape = wants.shape;
        self.queue.insert(key, priority, wants);
        if let Some(why) = self.queue.reason(shape).cloned() {
            self.block(shape, &why);
        }
    }

    fn place(&mut self, key: &ObjectKey, name: &Arc<str>, wants: &Arc<wants::Wants>) {
        self.placed.insert(key, name, wants);
        if let Some(node) = self.nodes.get_mut(name) {
            node.take(wants);
        }
        self.queue.unblock_followers();
    }

    fn remove_placed(&mut self, key: &ObjectKey) -> bool {
        let Some((name, wants)) = self.placed.remove(key) else { return false };
        if let Some(node) = self.nodes.get_mut(&name) {
            node.free(&wants);
        }
        true
    }

    fn block(&mut self, shape: u64, why: &Arc<str>) {
        let unreported = self.queue.block(shape, why);
        self.to_report.extend(unreported.into_iter().map(|pod| (pod, Verdict::Unschedulable(why.clone()))));
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        (!self.to_report.is_empty() || !self.queue.is_idle()).then_some(Duration::ZERO)
    }

    pub(crate) fn act(&mut self, api: &DirectClient, recorder: &mut EventRecorder, budget: usize) {
        for _ in 0..budget {
            if let Some((pod, verdict)) = self.to_report.pop_front() {
                report(api, recorder, &pod, &verdict);
            } else if let Some(pod) = self.queue.next() {
                self.try_one(api, recorder, &pod);
            } else {
                return;
            }
        }
    }

    fn try_one(&mut self, api: &DirectClient, recorder: &mut EventRecorder, key: &ObjectKey) {
        let Some(wants) = self.queue.get(key).map(|waiting| waiting.wants.clone()) else { return };
        let Some(pod) = api.get(&PODS, key) else {
            self.queue.remove(key);
            return;
        };
        let uid = json::uid(&pod);
        let chosen = fit::choose(&self.nodes, &mut self.placed, &wants, self.dice, uid);
        let bound = chosen.and_then(|node| match api.bind(&PODS, key, &node) {
            Ok(()) => Ok(node),
            Err(status) => Err(status.message),
        });
        match bound {
            Ok(node) => {
                self.queue.remove(key);
                self.place(key, &node, &wants);
                let message = format!("Successfully assigned {key} to {node}");
                recorder.record(api, Reporter::Scheduler, &pod, Note::normal("Scheduled", message));
            }
            Err(why) => self.block(wants.shape, &why.into()),
        }
    }
}

/// Writes the `PodScheduled` condition and an event.
fn report(api: &DirectClient, recorder: &mut EventRecorder, key: &ObjectKey, verdict: &Verdict) {
    let (reason, message) = match verdict {
        Verdict::Unschedulable(why) => ("Unschedulable", &**why),
        Verdict::Gated => ("SchedulingGated", GATED),
    };
    let stamp = api.now().stamp(0);
    let edited = api.edit(&PODS, key, Some("status"), |pod| unscheduled(pod, reason, message, &stamp));
    if let (Ok(Some(pod)), Verdict::Unschedulable(why)) = (edited, verdict) {
        recorder.record(api, Reporter::Scheduler, &pod, Note::warning("FailedScheduling", &**why));
    }
}

/// Returns the pod with `PodScheduled=False`; `None` if it is unchanged or the pod is bound.
fn unscheduled(pod: &Value, reason: &str, message: &str, stamp: &str) -> Option<Value> {
    const KIND: &str = "PodScheduled";
    if json::text(pod, &["spec", "nodeName"]).is_some_and(|node| !node.is_empty()) {
        return None;
    }
    let mut conditions = json::list(pod, &["status", "conditions"]).to_vec();
    let known = conditions.iter().position(|condition| json::text(condition, &["type"]) == Some(KIND));
    let old = known.map(|at| conditions.remove(at));
    let same = old.as_ref().filter(|old| json::text(old, &["status"]) == Some("False"));
    let since = same.and_then(|old| json::text(old, &["lastTransitionTime"])).unwrap_or(stamp);
    let mut new = json!({
        "type": KIND, "status": "False", "lastProbeTime": null, "lastTransitionTime": since,
        "reason": reason, "message": message,
    });
    if let Some(generation) = json::at(pod, &["metadata", "generation"]) {
        new["observedGeneration"] = generation.clone();
    }
    if old.as_ref() == Some(&new) {
        return None;
    }
    conditions.push(new);
    let mut pod = pod.clone();
    json::set(&mut pod, &["status", "conditions"], Some(conditions.into()));
    Some(pod)
}
