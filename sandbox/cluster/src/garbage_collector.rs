//! A small garbage collector: deletes objects whose owners do not exist.
//!
//! It substitutes for the real controller. It observes every object of the sandbox at one resource version, so an
//! unknown owner does not exist.
//!
//! # Upstream
//! `pkg/controller/garbagecollector`

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::change::Change;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::direct::{DeleteOptions, Propagation};
use kcm_sandbox_apiserver::json;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// A node of the ownership graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) resource: Resource,
    pub(crate) key: ObjectKey,
    owners: Vec<Owner>,
    terminating: bool,
    foreground: bool,
    orphan: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    uid: String,
    blocks: bool,
}

/// The action for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Delete(Propagation),
    /// Remove the references to absent or terminating owners.
    Disown(Vec<String>),
    /// Remove a finalizer of the collector.
    RemoveFinalizer(&'static str),
}

/// The ownership graph of all objects. Pure.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    objects: BTreeMap<String, Owned>,
    dependents: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn get(&self, uid: &str) -> Option<&Owned> {
        self.objects.get(uid)
    }

    fn dependents(&self, uid: &str) -> impl Iterator<Item = (&String, &Owned)> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|uid| self.objects.get_key_value(uid))
    }

    /// Observes an object; returns the objects to process.
    fn insert(&mut self, uid: &str, new: Owned) -> Vec<String> {
        let mut affected = vec![uid.to_owned()];
        if let Some(old) = self.objects.get(uid) {
            if *old == new {
                return Vec::new();
            }
            for owner in &old.owners {
                if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                    dependents.remove(uid);
                }
                // The owner may wait only for this dependent.
                affected.push(owner.uid.clone());
            }
        }
        for owner in &new.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.to_owned());
        }
        if new.terminating && (new.foreground || new.orphan) {
            affected.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        }
        self.objects.insert(uid.to_owned(), new);
        affected
    }

    /// Removes an object; returns the objects to process.
    fn remove(&mut self, uid: &str) -> Vec<String> {
        let Some(old) = self.objects.remove(uid) else { return Vec::new() };
        let mut affected: Vec<String> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        for owner in old.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(uid);
                if dependents.is_empty() && !self.objects.contains_key(&owner.uid) {
                    self.dependents.remove(&owner.uid);
                }
            }
            affected.push(owner.uid);
        }
        affected
    }

    /// Decides the action for an object.
    fn plan(&self, uid: &str) -> Option<Action> {
        let object = self.objects.get(uid)?;
        if object.terminating {
            return self.plan_terminating(uid, object);
        }
        if object.owners.is_empty() {
            return None;
        }
        let (mut gone, mut waiting, mut solid) = (Vec::new(), Vec::new(), 0);
        for owner in &object.owners {
            match self.objects.get(&owner.uid).filter(|found| may_own(found, object)) {
                None => gone.push(owner),
                Some(found) if found.terminating && found.foreground => waiting.push(owner),
                Some(_) => solid += 1,
            }
        }
        if solid > 0 {
            let loose: Vec<String> = gone.into_iter().chain(waiting).map(|owner| owner.uid.clone()).collect();
            return (!loose.is_empty()).then_some(Action::Disown(loose));
        }
        let orphaning = object
            .owners
            .iter()
            .any(|owner| self.objects.get(&owner.uid).is_some_and(|found| found.terminating && found.orphan));
        if orphaning {
            return None;
        }
        // A dependent that blocks its owner is deleted in the foreground as well.
        if !waiting.is_empty() && self.dependents(uid).next().is_some() {
            return Some(Action::Delete(Propagation::Foreground));
        }
        Some(Action::Delete(match (object.orphan, object.foreground) {
            (true, _) => Propagation::Orphan,
            (false, true) => Propagation::Foreground,
            (false, false) => Propagation::Background,
        }))
    }

    fn plan_terminating(&self, uid: &str, object: &Owned) -> Option<Action> {
        if object.orphan {
            // Each orphaned dependent enqueues its owner again.
            let done = self.dependents(uid).next().is_none();
            return done.then_some(Action::RemoveFinalizer(ORPHAN));
        }
        if !object.foreground {
            return None;
        }
        let blocked = self
            .dependents(uid)
            .any(|(_, dependent)| dependent.owners.iter().any(|owner| owner.uid == uid && owner.blocks));
        (!blocked).then_some(Action::RemoveFinalizer(FOREGROUND))
    }

    /// Returns the owners that orphan a dependent.
    fn orphaned_by(&self, uid: &str) -> Vec<String> {
        let Some(object) = self.objects.get(uid) else { return Vec::new() };
        let orphaning =
            |owner: &&Owner| self.objects.get(&owner.uid).is_some_and(|found| found.terminating && found.orphan);
        object.owners.iter().filter(orphaning).map(|owner| owner.uid.clone()).collect()
    }
}

/// Returns the key of an owner: in the namespace of the dependent, or cluster-scoped.
fn may_own(owner: &Owned, dependent: &Owned) -> bool {
    owner.key.namespace().is_none() || owner.key.namespace() == dependent.key.namespace()
}

fn read(resource: &Resource, key: &ObjectKey, object: &Value) -> Owned {
    let owners = json::list(object, &["metadata", "ownerReferences"]).iter().map(|owner| Owner {
        uid: json::text(owner, &["uid"]).unwrap_or_default().to_owned(),
        blocks: owner.get("blockOwnerDeletion").is_some_and(|it| *it == true),
    });
    let finalizers = json::finalizers(object);
    Owned {
        resource: resource.clone(),
        key: key.clone(),
        owners: owners.collect(),
        terminating: json::is_terminating(object),
        foreground: finalizers.contains(&FOREGROUND),
        orphan: finalizers.contains(&ORPHAN),
    }
}

/// The collector: the graph and the queue of objects to process.
#[derive(Debug, Default)]
pub(crate) struct GarbageCollector {
    graph: Graph,
    queue: VecDeque<String>,
    queued: BTreeSet<String>,
}

impl GarbageCollector {
    pub(crate) fn observe(&mut self, change: &Change) {
        let old = change.old.map(|old| old.text_at(&["metadata", "uid"]));
        let new = change.new.map(|new| json::uid(new));
        let mut affected = Vec::new();
        if let Some(old) = old.filter(|old| Some(old.as_str()) != new) {
            affected.extend(self.graph.remove(&old));
        }
        if let Some(object) = change.new {
            affected.extend(self.graph.insert(json::uid(object), read(change.resource, change.key, object)));
        }
        for uid in affected {
            if self.queued.insert(uid.clone()) {
                self.queue.push_back(uid);
            }
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        (!self.queue.is_empty()).then_some(Duration::ZERO)
    }

    pub(crate) fn act(&mut self, api: &DirectClient, budget: usize) {
        for _ in 0..budget {
            let Some(uid) = self.queue.pop_front() else { return };
            self.queued.remove(&uid);
            let Some(object) = self.graph.get(&uid) else { continue };
            let orphaned = self.graph.orphaned_by(&uid);
            let action = if orphaned.is_empty() { self.graph.plan(&uid) } else { Some(Action::Disown(orphaned)) };
            if let Some(action) = action {
                // On a conflict the object has changed, and its change enqueues it again.
                drop(apply(api, &uid, object, action));
            }
        }
    }
}

fn apply(api: &DirectClient, uid: &str, object: &Owned, action: Action) -> Result<(), kcm_sandbox_apiserver::Status> {
    let (resource, key) = (&object.resource, &object.key);
    let edit = |make: &dyn Fn(&mut Value)| {
        let edited = api.edit(resource, key, None, |old| {
            if json::uid(old) != uid {
                return None;
            }
            let mut new = old.clone();
            make(&mut new);
            (new != *old).then_some(new)
        });
        edited.map(drop)
    };
    match action {
        Action::Delete(propagation) => {
            let options =
                DeleteOptions { uid: Some(uid.to_owned()), propagation: Some(propagation), ..DeleteOptions::default() };
            api.delete(resource, key, &options)
        }
        Action::Disown(owners) => edit(&|new| {
            let mut left = json::list(new, &["metadata", "ownerReferences"]).to_vec();
            left.retain(|owner| json::text(owner, &["uid"]).is_none_or(|uid| !owners.iter().any(|it| it == uid)));
            json::set(new, &["metadata", "ownerReferences"], (!left.is_empty()).then(|| left.into()));
        }),
        Action::RemoveFinalizer(finalizer) => edit(&|new| {
            let mut left = json::list(new, &["metadata", "finalizers"]).to_vec();
            left.retain(|name| *name != finalizer);
            json::set(new, &["metadata", "finalizers"], (!left.is_empty()).then(|| left.into()));
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kcm_sandbox_apiserver::{CONFIG_MAPS, NODES};

    /// `name`, `name!` terminating in the foreground, `name?` terminating and orphaning, `name-` just terminating;
    /// owners after `<`, with `!` for `blockOwnerDeletion`.
    fn graph(objects: &[&str]) -> Graph {
        let mut graph = Graph::default();
        for text in objects {
            let (name, owners) = text.split_once('<').unwrap_or((text, ""));
            let uid = name.trim_end_matches(['!', '?', '-']);
            let owner =
                |owner: &str| Owner { uid: owner.trim_end_matches('!').to_owned(), blocks: owner.ends_with('!') };
            let object = Owned {
                resource: CONFIG_MAPS,
                key: ObjectKey::namespaced("default", uid),
                owners: owners.split_whitespace().map(owner).collect(),
                terminating: name.len() > uid.len(),
                foreground: name.ends_with('!'),
                orphan: name.ends_with('?'),
            };
            graph.insert(uid, object);
        }
        graph
    }

    #[test]
    fn the_action_follows_from_the_owners() {
        let delete = |propagation| Some(Action::Delete(propagation));
        let disown = |owner: &str| Some(Action::Disown(vec![owner.to_owned()]));
        for (name, objects, expected) in [
            ("it has no owner", vec!["x"], None),
            ("its owner is there", vec!["a", "x<a"], None),
            ("its owner is gone", vec!["x<a"], delete(Propagation::Background)),
            ("all owners are gone", vec!["x<a b"], delete(Propagation::Background)),
            ("one of its owners is gone", vec!["a", "x<a b"], disown("b")),
            ("its owner only terminates", vec!["a-", "x<a"], None),
            ("its owner waits for it", vec!["a!", "x<a!"], delete(Propagation::Background)),
            ("its owner waits and it owns others", vec!["a!", "x<a!", "y<x"], delete(Propagation::Foreground)),
            ("one owner waits, one stays", vec!["a!", "b", "x<a! b"], disown("a")),
            ("it is terminating already", vec!["x-<a"], None),
            ("it waits for dependents", vec!["x!", "y<x!"], None),
            ("dependents that block nothing", vec!["x!", "y<x"], Some(Action::RemoveFinalizer(FOREGROUND))),
            ("it has waited for all", vec!["x!"], Some(Action::RemoveFinalizer(FOREGROUND))),
            ("it still has orphans", vec!["x?", "y<x"], None),
            ("its orphans are free", vec!["x?"], Some(Action::RemoveFinalizer(ORPHAN))),
            ("its owner orphans it", vec!["a?", "x<a"], None),
        ] {
            assert_eq!(graph(&objects).plan("x"), expected, "{name}");
        }
        assert_eq!(graph(&["a?", "x<a b"]).orphaned_by("x"), ["a"]);
    }

    #[test]
    fn owners_are_in_the_same_namespace_or_cluster_scoped() {
        let object = |resource: Resource, key| Owned {
            resource,
            key,
            owners: Vec::new(),
            terminating: false,
            foreground: false,
            orphan: false,
        };
        let dependent = object(CONFIG_MAPS, ObjectKey::namespaced("a", "x"));
        assert!(may_own(&object(NODES, ObjectKey::cluster_scoped("n")), &dependent));
        assert!(may_own(&object(CONFIG_MAPS, ObjectKey::namespaced("a", "o")), &dependent));
        assert!(!may_own(&object(CONFIG_MAPS, ObjectKey::namespaced("b", "o")), &dependent));
    }

    #[test]
    fn a_deletion_enqueues_dependents_and_owners() {
        let mut graph = graph(&["a", "b", "x<a", "y<b"]);
        assert_eq!(graph.remove("a"), ["x"]);
        assert_eq!(graph.remove("y"), ["b"]);
        assert_eq!(graph.remove("gone"), Vec::<String>::new());
    }
}
