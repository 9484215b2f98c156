//! Nodes: registration, heartbeats, failure and recovery, and taint-based eviction.

pub(crate) mod health;
pub(crate) mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_api::time::format_micros;
use serde_json::{Value, json};

use self::object::Machine;
use crate::change::Change;
use crate::dice::Dice;
use crate::event_recorder::{EventRecorder, Note, Reporter};
use crate::timers::Timers;
use kcm_sandbox_apiserver::Status;
use kcm_sandbox_apiserver::direct::DeleteOptions;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::{LEASES, NODES, PODS};

const LEASE_PERIOD: Duration = Duration::from_secs(10);
const STATUS_PERIOD: Duration = Duration::from_mins(5);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// The kubelet reports the status of its node.
    Report(Arc<str>),
    /// The kubelet renews its lease.
    Renew(Arc<str>),
    /// The heartbeats of the node are missing.
    Lose(Arc<str>),
    /// The taints of the node are updated to its state.
    Taint(Arc<str>),
    /// The eviction time of a pod on a tainted node is computed.
    Judge(ObjectKey),
    /// The toleration of a pod has expired.
    Evict(ObjectKey),
    /// The node of a pod is deleted.
    Vanish(ObjectKey),
}

/// A node and its simulated machine.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) machine: Machine,
    /// Whether the kubelet runs.
    pub(crate) running: bool,
    /// Time of the last heartbeat.
    last_heartbeat: Duration,
    /// Whether the node is marked as lost.
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct Nodes {
    known: BTreeMap<Arc<str>, Node>,
    /// Pods by the node that they are bound to.
    pods: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    numbered: usize,
    timers: Timers<Task>,
    dice: Dice,
    /// Substitutes for the node lifecycle, taint eviction and pod garbage collector controllers.
    lifecycle: bool,
}

impl Nodes {
    pub(crate) fn new(dice: Dice, lifecycle: bool) -> Self {
        Self { known: BTreeMap::new(), pods: BTreeMap::new(), numbered: 0, timers: Timers::default(), dice, lifecycle }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.known.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known.keys()
    }

    /// Returns the pods that are bound to a node.
    pub(crate) fn pods_of(&self, name: &str) -> impl Iterator<Item = &ObjectKey> {
        self.pods.get(name).into_iter().flatten()
    }

    /// Creates further nodes with the next free names.
    pub(crate) fn add(api: &DirectClient, count: usize) -> Vec<String> {
        let names = (1..).map(|number| format!("node-{number}"));
        let free = names.filter(|name| api.get(&NODES, &ObjectKey::cluster_scoped(name.as_str())).is_none());
        let names: Vec<String> = free.take(count).collect();
        names.into_iter().filter(|name| Self::create(api, name).is_ok()).collect()
    }

    pub(crate) fn create(api: &DirectClient, name: &str) -> Result<(), Status> {
        api.create(&NODES, object::node(name)).map(drop)
    }

    /// Stops the kubelet of a node.
    pub(crate) fn stop(&mut self, name: &Arc<str>) {
        if let Some(node) = self.known.get_mut(name) {
            node.running = false;
            self.timers.set(&Task::Renew(name.clone()), None);
            self.timers.set(&Task::Report(name.clone()), None);
            if self.lifecycle {
                self.timers.set(&Task::Lose(name.clone()), Some(node.last_heartbeat + health::GRACE));
            }
        }
    }

    /// Restarts the kubelet of a node.
    pub(crate) fn start(&mut self, name: &Arc<str>, now: Duration) {
        if let Some(node) = self.known.get_mut(name) {
            node.running = true;
            node.lost = false;
            self.timers.set(&Task::Lose(name.clone()), None);
            for task in [Task::Report(name.clone()), Task::Renew(name.clone()), Task::Taint(name.clone())] {
                self.timers.set(&task, Some(now));
            }
        }
    }

    pub(crate) fn observe(&mut self, change: &Change, now: Duration) {
        if *change.resource == NODES {
            self.observe_node(change, now);
        } else if *change.resource == PODS {
            self.observe_pod(change, now);
        }
    }

    fn observe_node(&mut self, change: &Change, now: Duration) {
        let name: Arc<str> = change.key.name().into();
        let Some(new) = change.new else {
            self.known.remove(&name);
            for task in [Task::Report, Task::Renew, Task::Lose, Task::Taint] {
                self.timers.set(&task(name.clone()), None);
            }
            if self.lifecycle {
                for pod in self.pods.get(&name).into_iter().flatten() {
                    self.timers.set(&Task::Vanish(pod.clone()), Some(now));
                }
            }
            return;
        };
        if !self.known.contains_key(&name) {
            self.numbered += 1;
            let machine = Machine { number: self.numbered };
            self.known.insert(name.clone(), Node { machine, running: true, last_heartbeat: now, lost: false });
            self.timers.set(&Task::Report(name.clone()), Some(now));
            self.timers.set(&Task::Renew(name.clone()), Some(now));
        }
        if !self.lifecycle {
            return;
        }
        self.timers.set(&Task::Taint(name.clone()), Some(now));
        let taints = health::evicting_taints(new);
        if change.old.is_none_or(|old| health::evicting_taints(&old.value()) != taints) {
            for pod in self.pods.get(&name).into_iter().flatten() {
                self.timers.set(&Task::Evict(pod.clone()), None);
                self.timers.set(&Task::Judge(pod.clone()), (!taints.is_empty()).then_some(now));
            }
        }
    }

    fn observe_pod(&mut self, change: &Change, now: Duration) {
        let path = ["spec", "nodeName"];
        let old = change.old.map(|old| old.text_at(&path)).filter(|node| !node.is_empty()).map(Arc::from);
        let new = change.new.and_then(|new| json::text(new, &path)).filter(|node| !node.is_empty()).map(Arc::from);
        if old == new {
            return;
        }
        if let Some(pods) = old.and_then(|old| self.pods.get_mut(&old)) {
            pods.remove(change.key);
        }
        for task in [Task::Judge, Task::Evict, Task::Vanish] {
            self.timers.set(&task(change.key.clone()), None);
        }
        if let Some(node) = new {
            self.pods.entry(node).or_default().insert(change.key.clone());
            if self.lifecycle {
                self.timers.set(&Task::Judge(change.key.clone()), Some(now));
            }
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.timers.next()
    }

    pub(crate) fn act(
        &mut self,
        api: &DirectClient,
        kubelet_api: &DirectClient,
        recorder: &mut EventRecorder,
        mut budget: usize,
    ) {
        while budget > 0
            && let now = api.now().elapsed
            && let Some(task) = self.timers.pop_due(now)
        {
            budget -= 1;
            match task {
                Task::Report(name) => self.report(kubelet_api, &name, now),
                Task::Renew(name) => self.renew(kubelet_api, &name, now),
                Task::Lose(name) => self.lose(api, recorder, &name),
                Task::Taint(name) => self.taint(api, &name),
                Task::Judge(pod) => self.judge(api, &pod, now),
                Task::Evict(pod) => evict(api, recorder, &pod),
                // Not found is success.
                Task::Vanish(pod) => drop(api.delete(&PODS, &pod, &force())),
            }
        }
    }

    fn report(&mut self, api: &DirectClient, name: &Arc<str>, now: Duration) {
        let Some(node) = self.known.get_mut(name) else { return };
        node.last_heartbeat = now;
        let key = ObjectKey::cluster_scoped(&**name);
        let stamp = api.now().stamp(0);
        let machine = &node.machine;
        // A node that was deleted meanwhile is removed when its event is observed.
        drop(api.edit(&NODES, &key, None, |old| object::registered(old, machine)));
        drop(api.edit(&NODES, &key, Some("status"), |old| {
            let mut new = old.clone();
            json::set(&mut new, &["status"], Some(object::status(old, machine, &stamp)));
            (new != *old).then_some(new)
        }));
        self.timers.set(&Task::Report(name.clone()), Some(now + STATUS_PERIOD));
    }

    fn renew(&mut self, api: &DirectClient, name: &Arc<str>, now: Duration) {
        let Some(node) = self.known.get_mut(name) else { return };
        node.last_heartbeat = now;
        let key = ObjectKey::namespaced("kube-node-lease", &**name);
        let renewed = format_micros(api.now().time);
        let renewal = json!({ "spec": { "renewTime": renewed } });
        let first = api.merge(&LEASES, &key, None, &renewal).is_err();
        if first && let Some(node) = api.get(&NODES, &ObjectKey::cluster_scoped(&**name)) {
            // Fails only if the lease namespace is deleted; the next renewal retries.
            drop(api.create(&LEASES, object::lease(&node, &renewed)));
        }
        // Jitter, so that kubelets do not report all at once.
        let spread =
            if first { self.dice.between(Duration::ZERO, LEASE_PERIOD, &["lease", name]) } else { LEASE_PERIOD };
        self.timers.set(&Task::Renew(name.clone()), Some(now + spread));
    }

    /// Sets a node without heartbeats to `Unknown`, and its pods to not ready.
    fn lose(&mut self, api: &DirectClient, recorder: &mut EventRecorder, name: &Arc<str>) {
        let Some(node) = self.known.get_mut(name) else { return };
        node.lost = true;
        let key = ObjectKey::cluster_scoped(&**name);
        let stamp = api.now().stamp(0);
        let marked = api.edit(&NODES, &key, Some("status"), |old| {
            let mut new = old.clone();
            json::set(&mut new, &["status"], Some(health::lost_status(old, &stamp)));
            Some(new)
        });
        if let Ok(Some(node)) = marked {
            let message = format!("Node {name} status is now: NodeNotReady");
            recorder.record(api, Reporter::NodeController, &node, Note::normal("NodeNotReady", message));
        }
        self.taint(api, name);
        for pod in self.pods.get(name).into_iter().flatten() {
            let marked = api.edit(&PODS, pod, Some("status"), |old| unready(old, &stamp));
            if let Ok(Some(pod)) = marked {
                let why = Note::warning("NodeNotReady", "Node is not ready");
                recorder.record(api, Reporter::NodeController, &pod, why);
            }
        }
    }

    fn taint(&mut self, api: &DirectClient, name: &Arc<str>) {
        let Some(node) = self.known.get(name) else { return };
        let stamp = api.now().stamp(0);
        // A node that was deleted meanwhile is removed when its event is observed.
        drop(
            api.edit(&NODES, &ObjectKey::cluster_scoped(&**name), None, |old| health::tainted(old, !node.lost, &stamp)),
        );
    }

    /// Schedules the eviction of a pod, if it does not tolerate the taints of its node.
    fn judge(&mut self, api: &DirectClient, pod: &ObjectKey, now: Duration) {
        let Some((taints, patience)) = api.get(&PODS, pod).and_then(|pod| patience(api, &pod)) else { return };
        let added = taints.iter().filter_map(|taint| json::text(taint, &["timeAdded"])?.parse().ok()).max();
        let added: jiff::Timestamp = added.unwrap_or(api.now().time);
        let waited = Duration::try_from(api.now().time.duration_since(added)).unwrap_or_default();
        self.timers.set(&Task::Evict(pod.clone()), Some(now + patience.saturating_sub(waited)));
    }
}

/// Returns the taints that evict a pod, and how long it tolerates them.
fn patience(api: &DirectClient, pod: &Value) -> Option<(Vec<Value>, Duration)> {
    let name = json::text(pod, &["spec", "nodeName"])?;
    let node = api.get(&NODES, &ObjectKey::cluster_scoped(name))?;
    let taints = health::evicting_taints(&node);
    let patience = health::patience(pod, &taints)?;
    Some((taints, patience))
}

/// Deletes a pod whose toleration has expired.
fn evict(api: &DirectClient, recorder: &mut EventRecorder, key: &ObjectKey) {
    let Some(pod) = api.get(&PODS, key) else { return };
    if json::is_terminating(&pod) || patience(api, &pod).is_none() {
        return;
    }
    let note = Note::normal("TaintManagerEviction", format!("Marking for deletion Pod {key}"));
    recorder.record(api, Reporter::TaintEviction, &pod, note);
    let uid = Some(json::uid(&pod).to_owned());
    // Not found is success.
    drop(api.delete(&PODS, key, &DeleteOptions { uid, ..DeleteOptions::default() }));
}

fn force() -> DeleteOptions {
    DeleteOptions { grace: Some(0), ..DeleteOptions::default() }
}

/// Returns the pod with `Ready` set to false, since its node does not report; `None` if it is not ready already.
fn unready(pod: &Value, stamp: &str) -> Option<Value> {
    let mut pod = pod.clone();
    let conditions = pod.pointer_mut("/status/conditions")?.as_array_mut()?;
    let ready =
        conditions.iter_mut().find(|condition| condition["type"] == "Ready" && condition["status"] != "False")?;
    ready["status"] = json!("False");
    ready["lastTransitionTime"] = json!(stamp);
    Some(pod)
}
