//! The history of a run: every accepted write, with the object before and after it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kcm_sandbox_apiserver::{ObjectKey, Resource, Verb};
use serde_json::Value;

/// All objects of the store at one time.
pub type Objects = BTreeMap<Resource, BTreeMap<ObjectKey, Arc<Value>>>;

/// Every accepted write of a run, in the order in which the API server accepted them. Events are left out.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The objects before the first change.
    pub start: Objects,
    /// The changes, oldest first.
    pub changes: Vec<Change>,
    /// Number of processes that were killed during the run.
    pub kills: u32,
}

/// A write that the API server accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Time since the start of the run.
    pub at: Duration,
    /// The author of the write.
    pub author: Author,
    /// Verb of the request. A deletion that only sets the deletion time has [`Verb::Delete`] too.
    pub verb: Verb,
    /// Resource of the object.
    pub resource: Resource,
    /// Subresource of the request, for example `status`.
    pub subresource: Option<String>,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// Resource version of the write.
    pub version: u64,
    /// The object before the write; absent for a creation.
    pub before: Option<Arc<Value>>,
    /// The object after the write; absent if the write removed it.
    pub after: Option<Arc<Value>>,
    /// The body of the request, null if it has none or its author is not a process.
    pub sent: Arc<Value>,
    /// `true` if the response has reached the author. Writes of the cluster and the user are always answered.
    pub answered: bool,
    /// The caches of the process when the reconcile began. `None` if the author is not a loop with a key.
    pub seen: Option<Seen>,
}

/// The state of the caches of a process at one time, as resource versions. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    caches: Arc<BTreeMap<Resource, u64>>,
    live: Option<u64>,
}

impl Seen {
    /// The caches of these resources have received all events up to these versions.
    #[must_use]
    pub fn of(versions: impl IntoIterator<Item = (Resource, u64)>) -> Self {
        Self { caches: Arc::new(versions.into_iter().collect()), live: None }
    }

    /// The reconcile has also read from the API server, at this version of the store.
    #[must_use]
    pub fn and_live(self, version: u64) -> Self {
        Self { live: Some(version), ..self }
    }

    /// Returns the version of the store at the last read from the API server. `None` if there was no read.
    #[must_use]
    pub const fn live_version(&self) -> Option<u64> {
        self.live
    }

    /// Returns the version up to which the cache of a resource has received events. `None` without a cache.
    #[must_use]
    pub fn version(&self, resource: &Resource) -> Option<u64> {
        self.caches.get(resource).copied()
    }
}

/// The author of a write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// A loop of a manager.
    Loop {
        /// Number of the process, counted from 1.
        process: u32,
        /// Name of the loop, or of the client identity if no loop is known.
        name: String,
        /// The key that the loop reconciles. Empty if it is not known.
        key: String,
    },
    /// Scheduler, kubelets, and all other parts of the cluster except the managers.
    Cluster,
    /// The script of the scenario, or a perturbation that acts as a user.
    User,
}

impl Author {
    /// Returns `true` if the author is this loop, in any process.
    #[must_use]
    pub fn is_loop(&self, of: &str) -> bool {
        match self {
            Self::Loop { name, .. } => name == of,
            Self::Cluster | Self::User => false,
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop { process, name, key } => {
                if *process != 1 {
                    write!(f, "process {process} ")?;
                }
                write!(f, "{name}")?;
                if key.is_empty() { Ok(()) } else { write!(f, " {key}") }
            }
            Self::Cluster => f.write_str("cluster"),
            Self::User => f.write_str("user"),
        }
    }
}

impl Change {
    /// Returns `true` if the object did not exist before.
    #[must_use]
    pub const fn creates(&self) -> bool {
        self.before.is_none() && self.after.is_some()
    }

    /// Returns `true` if the object does not exist afterwards.
    #[must_use]
    pub const fn removes(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// Applies the change to the objects before it.
    pub fn apply_to(&self, objects: &mut Objects) {
        let of_resource = objects.entry(self.resource.clone()).or_default();
        match &self.after {
            Some(object) => drop(of_resource.insert(self.key.clone(), Arc::clone(object))),
            None => drop(of_resource.remove(&self.key)),
        }
    }
}

impl History {
    /// Returns the objects at the end.
    #[must_use]
    pub fn end(&self) -> Objects {
        let mut objects = self.start.clone();
        for change in &self.changes {
            change.apply_to(&mut objects);
        }
        objects
    }

    /// Calls `look` for each change, with its index and all objects before it, and returns the first error.
    ///
    /// # Errors
    /// The first error of `look`.
    pub fn each<E>(&self, mut look: impl FnMut(usize, &Change, &Objects) -> Result<(), E>) -> Result<(), E> {
        let mut objects = self.start.clone();
        for (index, change) in self.changes.iter().enumerate() {
            look(index, change, &objects)?;
            change.apply_to(&mut objects);
        }
        Ok(())
    }

    /// Returns the object under a key as it was at a resource version, or the last one before it. `None` if it did not
    /// exist at that time.
    #[must_use]
    pub fn at_version(&self, resource: &Resource, key: &ObjectKey, version: u64) -> Option<Arc<Value>> {
        let mut last = self.start.get(resource).and_then(|objects| objects.get(key)).cloned();
        for change in self.changes.iter().take_while(|change| change.version <= version) {
            if change.resource == *resource && change.key == *key {
                last.clone_from(&change.after);
            }
        }
        last
    }

    /// Returns the object that the author of a change had in its cache under a key when its reconcile began. Without a
    /// cache of the resource, returns the object before the change.
    #[must_use]
    pub fn seen_by(&self, index: usize, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        let change = self.changes.get(index)?;
        let seen = change.seen.as_ref().and_then(|seen| seen.version(resource));
        self.at_version(resource, key, seen.unwrap_or(change.version.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use kcm_sandbox_apiserver::PODS;
    use serde_json::json;

    use super::*;

    fn change(version: u64, before: Option<&Value>, after: Option<&Value>) -> Change {
        Change {
            at: Duration::ZERO,
            author: Author::User,
            verb: Verb::Update,
            resource: PODS,
            subresource: None,
            key: ObjectKey::namespaced("default", "web"),
            version,
            before: before.cloned().map(Arc::new),
            after: after.cloned().map(Arc::new),
            sent: Arc::new(Value::Null),
            answered: true,
            seen: None,
        }
    }

    #[test]
    fn shows_an_object_at_each_version_and_the_store_before_each_change() {
        let (one, two) = (json!(1), json!(2));
        let changes = vec![change(5, None, Some(&one)), change(7, Some(&one), Some(&two)), change(9, Some(&two), None)];
        let history = History { changes, ..History::default() };
        let key = ObjectKey::namespaced("default", "web");
        let at = |version| history.at_version(&PODS, &key, version).map(|object| Value::clone(&object));
        assert_eq!([at(4), at(5), at(6), at(8), at(9)], [None, Some(json!(1)), Some(json!(1)), Some(json!(2)), None]);
        assert_eq!(history.seen_by(1, &PODS, &key).as_deref(), Some(&one));
        let mut stale = history.clone();
        stale.changes[2].seen = Some(Seen::of([(PODS, 6)]));
        assert_eq!(stale.seen_by(2, &PODS, &key).as_deref(), Some(&one), "the cache was behind");
        let mut sizes = Vec::new();
        history
            .each(|_, change, objects| {
                sizes.push((objects.get(&PODS).map_or(0, BTreeMap::len), change.creates(), change.removes()));
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!(sizes, [(0, true, false), (1, false, false), (1, false, true)]);
        assert!(history.end()[&PODS].is_empty());
    }
}
