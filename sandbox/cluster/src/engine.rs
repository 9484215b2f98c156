//! The event loop of the cluster: the state of all components, and one iteration.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, Resource};

use crate::change::Change;
use crate::dice::Dice;
use crate::drain::Drains;
use crate::event_recorder::EventRecorder;
use crate::kubelet::Kubelets;
use crate::nodes::Nodes;
use crate::options::ClusterOptions;
use crate::schedule::Scheduler;
use kcm_sandbox_apiserver::direct::EventKind;
use kcm_sandbox_apiserver::direct::Stored;
use kcm_sandbox_apiserver::direct::{DirectClient, Objects};
use kcm_sandbox_apiserver::{EVENTS, NODES};

/// Maximum number of changes that are observed, and of actions per component, in one iteration.
const BATCH: usize = 200;

/// When the next iteration is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    More,
    /// At this time since the start of the sandbox, or at the next change.
    Idle(Option<Duration>),
}

#[derive(Debug)]
pub(crate) struct Engine {
    /// The client of the substitute controllers and of terminal commands.
    pub(crate) api: DirectClient,
    scheduler_api: DirectClient,
    kubelet_api: DirectClient,
    cursor: u64,
    /// All objects at the cursor; shared with the store.
    pub(crate) objects: Objects,
    pub(crate) nodes: Nodes,
    pub(crate) kubelets: Kubelets,
    scheduler: Option<Scheduler>,
    pub(crate) drains: Drains,
    recorder: EventRecorder,
}

impl Engine {
    pub(crate) fn new(api: &DirectClient, options: ClusterOptions) -> Self {
        let dice = Dice::new(options.seed);
        Self {
            scheduler_api: api.by("kube-scheduler"),
            kubelet_api: api.by("kubelet"),
            api: api.by("kube-controller-manager"),
            cursor: 0,
            objects: Objects::new(),
            nodes: Nodes::new(dice, options.node_lifecycle),
            kubelets: Kubelets::new(dice, options.rules),
            scheduler: options.scheduler.then(|| Scheduler::new(dice)),
            drains: Drains::default(),
            recorder: EventRecorder::new(dice, options.events_kept),
        }
    }

    /// Observes changes and performs due actions.
    pub(crate) fn turn(&mut self) -> Turn {
        self.observe();
        self.nodes.act(&self.api, &self.kubelet_api, &mut self.recorder, BATCH);
        // Node registrations are observed in the same iteration, so that pods are not reported as unschedulable first.
        let more = self.observe();
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.act(&self.scheduler_api, &mut self.recorder, BATCH);
        }
        self.kubelets.act(&self.kubelet_api, &mut self.recorder, &self.nodes, BATCH);
        self.drains.act(&self.api, &self.nodes);
        self.recorder.act(&self.api, BATCH);

        let next = [
            self.nodes.next(),
            self.kubelets.next(),
            self.scheduler.as_ref().and_then(Scheduler::next),
            self.drains.next(),
            self.recorder.next(),
        ];
        let next = next.into_iter().flatten().min();
        let due = next.is_some_and(|next| next <= self.api.now().elapsed);
        if more || due { Turn::More } else { Turn::Idle(next) }
    }

    /// Observes the next changes; returns whether there may be more.
    fn observe(&mut self) -> bool {
        let Ok(events) = self.api.events_after(self.cursor, BATCH) else {
            // Behind the window, or at the start: relist.
            self.catch_up();
            return false;
        };
        for event in &events {
            self.cursor = event.version;
            let new = (event.kind != EventKind::Deleted).then_some(&event.object);
            self.apply(&event.resource, &event.key, new);
        }
        events.len() == BATCH
    }

    fn catch_up(&mut self) {
        let (version, objects) = self.api.snapshot();
        self.cursor = version;
        let known = self.objects.iter().flat_map(|(resource, all)| all.keys().map(move |key| (resource, key)));
        let gone = known.filter(|(resource, key)| objects.get(resource).is_none_or(|all| !all.contains_key(key)));
        let gone: Vec<(Resource, ObjectKey)> = gone.map(|(resource, key)| (resource.clone(), key.clone())).collect();
        for (resource, key) in gone {
            self.apply(&resource, &key, None);
        }
        for (resource, all) in &objects {
            for (key, object) in all {
                self.apply(resource, key, Some(object));
            }
        }
    }

    fn apply(&mut self, resource: &Resource, key: &ObjectKey, new: Option<&Arc<Stored>>) {
        let old = match new {
            Some(new) => self.put(resource, key, new),
            None => self.objects.get_mut(resource).and_then(|all| all.remove(key)),
        };
        if old.as_ref().zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new)) {
            return;
        }
        let value = new.map(|new| new.value());
        let change = Change { resource, key, old: old.as_deref(), new: value.as_ref() };
        let now = self.api.now().elapsed;
        self.nodes.observe(&change, now);
        self.kubelets.observe(&change, now);
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.observe(&change);
        }
        if *resource == EVENTS {
            self.recorder.observe(key, new.is_some(), now);
        }
        if *resource == NODES && old.is_none() {
            self.kubelets.wake(&self.nodes, key.name(), now);
        }
    }

    fn put(&mut self, resource: &Resource, key: &ObjectKey, new: &Arc<Stored>) -> Option<Arc<Stored>> {
        // Most changes are to known objects: their keys are not cloned.
        if !self.objects.contains_key(resource) {
            self.objects.insert(resource.clone(), std::collections::BTreeMap::new());
        }
        let all = self.objects.get_mut(resource)?;
        match all.get_mut(key) {
            Some(known) => Some(std::mem::replace(known, new.clone())),
            None => all.insert(key.clone(), new.clone()),
        }
    }
}
