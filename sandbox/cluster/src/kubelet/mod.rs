//! Kubelets: they run the pods of their nodes through their [`lifecycle`], and write their statuses.

mod lifecycle;
mod plan;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use serde_json::Value;

use self::lifecycle::{Effects, Environment, PodRun};
use self::status::Place;
use crate::behaviour::PodRules;
use crate::change::Change;
use crate::dice::Dice;
use crate::event_recorder::{EventRecorder, Note, Reporter};
use crate::nodes::Nodes;
use crate::timers::Timers;
use kcm_sandbox_apiserver::PODS;
use kcm_sandbox_apiserver::direct::DeleteOptions;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::json;

/// A pod that is bound to a node.
#[derive(Debug)]
struct Pod {
    uid: String,
    node: Arc<str>,
    /// Absent until the kubelet has observed the pod.
    run: Option<PodRun>,
    /// The last octet of its IP.
    address: Option<u8>,
    /// The resource version of the last write of the kubelet, whose event is ignored.
    written: Option<String>,
    /// The pod has changed since the kubelet observed it.
    changed: bool,
}

/// Per-node state besides pods.
#[derive(Debug, Default)]
struct Local {
    images: BTreeSet<Box<str>>,
    addresses: BTreeSet<u8>,
    last_address: u8,
}

/// The kubelets of all nodes.
#[derive(Debug)]
pub(crate) struct Kubelets {
    pods: BTreeMap<ObjectKey, Pod>,
    local: BTreeMap<Arc<str>, Local>,
    timers: Timers<ObjectKey>,
    rules: PodRules,
    dice: Dice,
}

impl Kubelets {
    pub(crate) fn new(dice: Dice, rules: PodRules) -> Self {
        Self { pods: BTreeMap::new(), local: BTreeMap::new(), timers: Timers::default(), rules, dice }
    }

    pub(crate) fn observe(&mut self, change: &Change, now: Duration) {
        if *change.resource != PODS {
            return;
        }
        let node = |pod: &Value| json::text(pod, &["spec", "nodeName"]).filter(|node| !node.is_empty()).map(Arc::from);
        let bound = change.new.and_then(|new| Some((new, node(new)?)));
        let Some((new, node)) = bound else {
            self.forget(change.key);
            return;
        };
        let uid = json::uid(new);
        if self.pods.get(change.key).is_some_and(|pod| pod.uid != uid || pod.node != node) {
            self.forget(change.key);
        }
        let pod = self.pods.entry(change.key.clone()).or_insert_with(|| Pod {
            uid: uid.to_owned(),
            node,
            run: None,
            address: None,
            written: None,
            changed: true,
        });
        if pod.written.as_deref() == Some(json::version(new)) {
            return;
        }
        pod.changed = true;
        self.timers.set_earlier(change.key, now);
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.timers.set(key, None);
        if let Some(pod) = self.pods.remove(key)
            && let (Some(address), Some(local)) = (pod.address, self.local.get_mut(&pod.node))
        {
            local.addresses.remove(&address);
        }
    }

    /// Enqueues all pods of a node after its kubelet was started.
    pub(crate) fn wake(&mut self, nodes: &Nodes, node: &str, now: Duration) {
        for key in nodes.pods_of(node) {
            self.timers.set_earlier(key, now);
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.timers.next()
    }

    pub(crate) fn act(&mut self, api: &DirectClient, recorder: &mut EventRecorder, nodes: &Nodes, mut budget: usize) {
        while budget > 0
            && let now = api.now().elapsed
            && let Some(key) = self.timers.pop_due(now)
        {
            budget -= 1;
            self.sync(api, recorder, nodes, &key, now);
        }
    }

    /// Performs due steps of a pod, and writes its status.
    fn sync(
        &mut self,
        api: &DirectClient,
        recorder: &mut EventRecorder,
        nodes: &Nodes,
        key: &ObjectKey,
        now: Duration,
    ) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        // Pods of a stopped kubelet do not advance; it processes them when it starts.
        let Some(node) = nodes.get(&pod.node).filter(|node| node.running) else { return };
        let Some(object) = api.get(&PODS, key).filter(|object| json::uid(object) == pod.uid) else { return };
        if pod.run.is_none() && is_over(&object) {
            return;
        }
        let local = self.local.entry(pod.node.clone()).or_default();
        let name = status::pod_name(&object);
        let environment =
            Environment { now, dice: self.dice, has_image: &|image| local.images.contains(image), pod: &name };
        let mut effects = Vec::new();
        let mut complaints = Vec::new();
        if pod.run.is_none() || pod.changed {
            complaints = pod.observe(&object, &self.rules, &environment, &mut effects);
        }
        let Some(run) = pod.run.as_mut() else { return };
        effects.push(run.step(&environment));
        let (next, stopped) = (run.next(), run.is_stopped());
        let mut said: Vec<Note> =
            complaints.into_iter().map(|complaint| Note::warning("UnknownBehaviour", complaint)).collect();
        for Effects { notes, pulled } in effects {
            said.extend(notes);
            local.images.extend(pulled);
        }
        let host = node.machine.address();
        let address = pod.take_address(&object, local).map(|last| format!("{}.{last}", node.machine.pod_network()));
        let on_host = json::at(&object, &["spec", "hostNetwork"]).is_some_and(|it| *it == true);
        let address = if on_host { Some(host.clone()) } else { address };
        let place = Place { host: &host, address: address.as_deref() };
        let Some(run) = pod.run.as_ref() else { return };
        let written = api.edit(&PODS, key, Some("status"), |old| {
            if json::uid(old) != pod.uid {
                return None;
            }
            status::written(old, run, place, api.now())
        });
        if let Ok(Some(object)) = &written {
            pod.written = Some(json::version(object).to_owned());
        }
        self.timers.set(key, next);
        for note in said {
            recorder.record(api, Reporter::Kubelet { node: &pod.node }, &object, note);
        }
        if stopped {
            let options = DeleteOptions { grace: Some(0), uid: Some(pod.uid.clone()), ..DeleteOptions::default() };
            // Not found is success.
            drop(api.delete(&PODS, key, &options));
        }
    }
}

impl Pod {
    /// Observes a new or changed pod; returns the annotations that cannot be parsed.
    fn observe(
        &mut self,
        object: &Value,
        rules: &PodRules,
        environment: &Environment<'_>,
        effects: &mut Vec<Effects>,
    ) -> Vec<String> {
        self.changed = false;
        let (plan, mut complaints) = plan::read(object, rules);
        match &mut self.run {
            Some(run) if run.plan != plan => effects.push(run.replan(plan, environment)),
            Some(_) => complaints.clear(),
            None => self.run = Some(PodRun::new(plan, environment.now)),
        }
        if json::is_terminating(object)
            && let Some(run) = &mut self.run
        {
            let grace = json::at(object, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_u64);
            effects.push(run.stop(Duration::from_secs(grace.unwrap_or(0)), environment));
        }
        complaints
    }

    /// Returns the IP of a pod after its sandbox is created, unless it uses the host network.
    fn take_address(&mut self, object: &Value, local: &mut Local) -> Option<u8> {
        let has_sandbox = self.run.as_ref().is_some_and(PodRun::has_sandbox);
        if self.address.is_none()
            && has_sandbox
            && json::at(object, &["spec", "hostNetwork"]).is_none_or(|it| *it != true)
        {
            let after = local.last_address;
            let free = (1..=253_u8).map(|step| (u16::from(after) + u16::from(step)) % 254).filter(|last| *last > 1);
            let free = free.filter_map(|last| u8::try_from(last).ok()).find(|last| !local.addresses.contains(last));
            // Pods beyond the range share addresses; no traffic is sent to them.
            let last = free.unwrap_or(254);
            local.last_address = last;
            local.addresses.insert(last);
            self.address = Some(last);
        }
        self.address
    }
}

/// Reports whether a pod was already terminated when this kubelet first observed it.
fn is_over(pod: &Value) -> bool {
    matches!(json::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed"))
}
