//! Graph and plan against a simple model: whatever the order of events and of work, the same objects are left, and none is
//! deleted that has an owner.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use kcm_framework::api::Uid;
use kcm_framework::client::DeletionPropagation;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixtures::{MAPS, NODES, Object, uid};
use crate::garbage_collector::graph::{Effect, Graph, Identity, Task};
use crate::garbage_collector::plan::{Action, OwnerState, plan};

/// An object of the API server.
#[derive(Debug, Clone)]
struct Stored {
    /// Empty for cluster-scoped ones.
    namespace: &'static str,
    owners: BTreeMap<String, bool>,
    finalizers: BTreeSet<&'static str>,
    is_terminating: bool,
    version: u64,
}

impl Stored {
    fn waits(&self) -> bool {
        self.is_terminating && self.finalizers.contains("foregroundDeletion")
    }

    /// The owner that a reference of this object names, if it is there.
    fn owner<'a>(&self, name: &str, world: &'a World) -> Option<&'a Stored> {
        world.objects.get(name).filter(|owner| owner.namespace.is_empty() || owner.namespace == self.namespace)
    }

    fn object(&self, name: &str, world: &World) -> Object {
        let owners: Vec<Value> = self
            .owners
            .iter()
            .map(|(owner, blocks)| {
                let kind = if world.cluster_scoped.contains(owner) { "Node" } else { "ConfigMap" };
                json!({ "apiVersion": "v1", "kind": kind, "name": owner, "uid": owner, "blockOwnerDeletion": blocks })
            })
            .collect();
        let mut object = json!({ "metadata": {
            "name": name, "uid": name, "resourceVersion": self.version.to_string(), "ownerReferences": owners,
            "finalizers": self.finalizers,
        } });
        if !self.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        if self.is_terminating {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T12:00:00Z");
        }
        Object(object)
    }
}

/// The API server, its watches, and the work of the garbage collector.
#[derive(Default)]
struct World {
    objects: BTreeMap<String, Stored>,
    cluster_scoped: BTreeSet<String>,
    /// Events that informers have not received yet, by namespace; absent objects are deletions.
    watches: BTreeMap<&'static str, VecDeque<(String, Option<Object>)>>,
    graph: Graph,
    process: Vec<Uid>,
    orphan: Vec<Uid>,
    version: u64,
    /// The objects that the garbage collector deleted although an owner was there.
    wrongly_deleted: Vec<String>,
}

impl World {
    fn written(&mut self, name: &str, namespace: &'static str) {
        self.version += 1;
        if let Some(stored) = self.objects.get_mut(name) {
            stored.version = self.version;
        }
        let gone = self.objects.get(name).is_some_and(|stored| stored.is_terminating && stored.finalizers.is_empty());
        if gone {
            self.objects.remove(name);
        }
        let object = self.objects.get(name).map(|stored| stored.object(name, self));
        self.watches.entry(namespace).or_default().push_back((name.to_owned(), object));
    }

    fn delete(&mut self, name: &str, propagation: DeletionPropagation) {
        let Some(stored) = self.objects.get_mut(name) else { return };
        stored.is_terminating = true;
        stored.finalizers.remove("orphan");
        stored.finalizers.remove("foregroundDeletion");
        match propagation {
            DeletionPropagation::Orphan => {
                stored.finalizers.insert("orphan");
            }
            DeletionPropagation::Foreground => {
                stored.finalizers.insert("foregroundDeletion");
            }
            DeletionPropagation::Background => {}
        }
        let namespace = stored.namespace;
        self.written(name, namespace);
    }

    fn edit(&mut self, name: &str, edit: impl FnOnce(&mut Stored)) {
        let Some(stored) = self.objects.get_mut(name) else { return };
        edit(stored);
        let namespace = stored.namespace;
        self.written(name, namespace);
    }

    fn enqueue(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Process(uid) if !self.process.contains(&uid) => self.process.push(uid),
                Effect::Orphan(uid) if !self.orphan.contains(&uid) => self.orphan.push(uid),
                Effect::Process(_) | Effect::Orphan(_) | Effect::InvalidNamespace { .. } => {}
            }
        }
    }

    /// Does one thing; returns whether there was any.
    fn step(&mut self, choice: usize) -> bool {
        let watches: Vec<&'static str> =
            self.watches.iter().filter(|(_, events)| !events.is_empty()).map(|(watch, _)| *watch).collect();
        let total = watches.len() + self.process.len() + self.orphan.len();
        if total == 0 {
            return false;
        }
        let mut choice = choice % total;
        if let Some(watch) = watches.get(choice) {
            let event = self.watches.get_mut(watch).and_then(VecDeque::pop_front).expect("it is not empty");
            self.receive(&event.0, event.1.as_ref());
            return true;
        }
        choice -= watches.len();
        if choice < self.process.len() {
            let uid = self.process.remove(choice);
            self.process_one(&uid);
        } else {
            let uid = self.orphan.remove(choice - self.process.len());
            self.orphan_one(&uid);
        }
        true
    }

    fn receive(&mut self, name: &str, object: Option<&Object>) {
        let effects = match object {
            Some(object) => self.graph.observe(&Arc::new(object.resource()), &object.shared()),
            None => self.graph.remove(&uid(name)),
        };
        self.enqueue(effects);
    }

    /// Whether all informers have received all events: only then are finalizers removed.
    fn is_synced(&self) -> bool {
        self.watches.values().all(VecDeque::is_empty)
    }

    fn read(&self, identity: &Identity) -> Option<(String, Stored)> {
        let namespace = if *identity.kind == *NODES.kind { "" } else { identity.namespace.as_deref().unwrap_or("") };
        let (name, stored) = self.objects.get_key_value(&*identity.name)?;
        (stored.namespace == namespace && uid(name) == identity.uid).then(|| (name.clone(), stored.clone()))
    }

    fn confirm_absent(&mut self, identity: &Identity) {
        let effects = self.graph.confirm_absent(identity);
        self.enqueue(effects);
    }

    fn process_one(&mut self, key: &Uid) {
        let Some(item) = self.graph.item(key) else { return };
        match &item.task {
            Task::None => return,
            Task::Wait { is_blocked: false, .. } => {
                if !self.is_synced() {
                    return self.process.push(key.clone());
                }
                return self.edit(&key.to_string(), |stored| {
                    stored.finalizers.remove("foregroundDeletion");
                });
            }
            Task::Wait { process, .. } => {
                return self.enqueue(process.iter().cloned().map(Effect::Process).collect());
            }
            Task::BreakCycle => {
                return self
                    .edit(&key.to_string(), |stored| stored.owners.values_mut().for_each(|blocks| *blocks = false));
            }
            Task::LookUp => {}
        }
        let Some((name, live)) = self.read(&item.identity) else {
            self.confirm_absent(&item.identity);
            // Dependents may give it another identity, which is looked up next.
            if self.graph.next_lookup(key).is_some() {
                self.process.push(key.clone());
            }
            return;
        };
        let meta = live.object(&name, self).meta();
        let mut states = Vec::new();
        for reference in &meta.owner_references {
            let owner = Identity::named(reference, item.identity.namespace.as_ref());
            states.push(if self.graph.is_absent(&owner) {
                OwnerState::Absent
            } else {
                match self.read(&owner) {
                    Some((_, owner)) if owner.waits() => OwnerState::Waiting,
                    Some(_) => OwnerState::Solid,
                    None => {
                        let is_namespaced = *owner.kind == *MAPS.kind;
                        self.graph.remember_absent(if is_namespaced { owner } else { owner.cluster_scoped() });
                        OwnerState::Absent
                    }
                }
            });
        }
        match plan(&item, &meta, &states) {
            Action::Keep(_) => {}
            Action::RemoveReferences(owners) => {
                let owners: BTreeSet<String> = owners.iter().map(ToString::to_string).collect();
                self.edit(&name, |stored| stored.owners.retain(|owner, _| !owners.contains(owner)));
            }
            Action::DeleteInForeground { unblock } => {
                if unblock {
                    self.edit(&name, |stored| stored.owners.values_mut().for_each(|blocks| *blocks = false));
                }
                self.collect(&name, DeletionPropagation::Foreground);
            }
            Action::Delete(propagation) => self.collect(&name, propagation),
        }
        if self.graph.next_lookup(key).is_some() && !self.is_synced() {
            self.process.push(key.clone());
        }
    }

    fn collect(&mut self, name: &str, propagation: DeletionPropagation) {
        let stored = &self.objects[name];
        if stored.owners.keys().any(|owner| stored.owner(owner, self).is_some_and(|owner| !owner.waits())) {
            self.wrongly_deleted.push(name.to_owned());
        }
        self.delete(name, propagation);
    }

    fn orphan_one(&mut self, key: &Uid) {
        if self.graph.orphaning(key).is_none() {
            return;
        }
        if !self.is_synced() {
            return self.orphan.push(key.clone());
        }
        let owner = key.to_string();
        for dependent in self.graph.dependents(key) {
            self.edit(&dependent.name, |stored| {
                stored.owners.remove(&owner);
            });
        }
        self.edit(&owner, |stored| {
            stored.finalizers.remove("orphan");
        });
    }

    /// The objects that are left in the end, where those that are deleted take along what only they own.
    fn expected(&self, deleted: &BTreeSet<String>) -> BTreeSet<String> {
        let mut left: BTreeSet<String> = self.objects.keys().filter(|name| !deleted.contains(*name)).cloned().collect();
        loop {
            let has_owner = |name: &String| {
                let stored = &self.objects[name];
                let is_there = |owner: &String| left.contains(owner) && stored.owner(owner, self).is_some();
                stored.owners.is_empty() || stored.owners.keys().any(is_there)
            };
            let next: BTreeSet<String> = left.iter().filter(|name| has_owner(name)).cloned().collect();
            if next.len() == left.len() {
                return next;
            }
            left = next;
        }
    }
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "ghost"];

/// Objects in two namespaces and cluster-scoped ones, with owners among them, and one owner that never existed.
fn worlds() -> impl Strategy<Value = World> {
    let object = (0..6_usize, proptest::collection::vec((0..NAMES.len(), any::<bool>()), 0..3));
    proptest::collection::vec(object, 7).prop_map(|rows| {
        let mut world = World::default();
        for (name, (place, _)) in NAMES.iter().zip(&rows) {
            if *place == 0 {
                world.cluster_scoped.insert((*name).to_owned());
            }
        }
        for (name, (place, owners)) in NAMES.iter().zip(rows) {
            let namespace = ["", "two", "one", "one", "one", "one"][place];
            // Cluster-scoped objects own, and are not owned: a wrong reference would keep them for ever.
            let owners = owners.into_iter().filter(|_| !namespace.is_empty());
            let owners = owners.map(|(owner, blocks)| (NAMES[owner].to_owned(), blocks)).collect();
            let stored = Stored { namespace, owners, finalizers: BTreeSet::new(), is_terminating: false, version: 0 };
            world.objects.insert((*name).to_owned(), stored);
        }
        let names: Vec<(String, &'static str)> =
            world.objects.iter().map(|(name, stored)| (name.clone(), stored.namespace)).collect();
        for (name, namespace) in names {
            world.written(&name, namespace);
        }
        world
    })
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows = self.objects.iter().map(|(name, stored)| format!("{}/{name}<{:?}", stored.namespace, stored.owners));
        f.debug_list().entries(rows).finish()
    }
}

/// What a user deletes, and after how many steps.
type Deletions = Vec<(usize, usize, u8)>;

fn play(world: &mut World, deletions: &Deletions, choices: &[usize]) -> Result<(), TestCaseError> {
    let policy = |choice: u8| match choice {
        0 => DeletionPropagation::Background,
        1 => DeletionPropagation::Foreground,
        _ => DeletionPropagation::Orphan,
    };
    let mut due = deletions.clone();
    due.sort_unstable_by_key(|(_, step, _)| std::cmp::Reverse(*step));
    for step in 0..4_000 {
        while due.last().is_some_and(|(_, at, _)| *at <= step) {
            let (name, _, choice) = due.pop().expect("it is not empty");
            world.delete(NAMES[name], policy(choice));
        }
        if !world.step(choices[step % choices.len()]) && due.is_empty() {
            prop_assert_eq!(&world.wrongly_deleted, &Vec::<String>::new(), "deleted although an owner was there");
            return Ok(());
        }
    }
    Err(TestCaseError::fail(format!("it never comes to rest: {:?} {:?} {world:?}", world.process, world.orphan)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_objects_are_left_that_have_an_owner_or_need_none(
        mut world in worlds(),
        deletions in proptest::collection::vec((0..7_usize, 0..60_usize, 0..2_u8), 0..4),
        choices in proptest::collection::vec(0..1_000_usize, 64),
    ) {
        let deleted = deletions.iter().map(|(name, ..)| NAMES[*name].to_owned()).collect();
        let expected = world.expected(&deleted);
        play(&mut world, &deletions, &choices)?;
        prop_assert_eq!(world.objects.keys().cloned().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn nothing_is_deleted_that_has_an_owner_and_everything_that_is_deleted_goes(
        mut world in worlds(),
        deletions in proptest::collection::vec((0..7_usize, 0..60_usize, 0..3_u8), 0..5),
        choices in proptest::collection::vec(0..1_000_usize, 64),
    ) {
        play(&mut world, &deletions, &choices)?;
        for (name, ..) in deletions {
            prop_assert!(!world.objects.contains_key(NAMES[name]), "{} is still there", NAMES[name]);
        }
    }
}
