//! The commit of a list: the cache changes in one step, and event handlers are notified in slices.
//!
//! Between two slices other tasks of the thread run. Readers see the old contents until the list is in the cache and its
//! indexes, and the new contents after it. The last sync resource version moves after the last event handler, so nobody who
//! waits for a version finds handlers behind. The informer applies no event before the commit has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::{ObjectKey, ResourceVersion, Uid, View};

use crate::cache::Cache as _;
use crate::change::{Change, Origin};
use crate::event_handlers::HandlerRegistration;
use crate::shared_informer::{SharedInformer, Staged, unindexed};
use crate::store::{IndexPanicked, Replacement};
use crate::undecodable::{Undecodable, UndecodableObjects};

/// Largest number of changes that are applied to the cache in one step. If there are more, the new contents are built
/// aside.
const IN_PLACE: usize = 1_000;

/// Number of objects that one step adds to contents that are built aside.
const BUILT: usize = 512;

/// Number of changes of which one step notifies all handlers.
const NOTIFIED: usize = 128;

/// Number of deleted objects that one step reports to hooks.
const ENDED: usize = 512;

/// A commit that is under way.
pub(crate) struct Commit<V> {
    stage: Stage<V>,
    /// The version of the list, and its objects that cannot be decoded. `None` if the indexes are rebuilt, which ends
    /// without a step.
    list: Option<(ResourceVersion, UndecodableObjects)>,
    origin: Origin,
    /// The objects that the list shows deleted, or terminating for the first time.
    ended: Vec<Uid>,
}

enum Stage<V> {
    /// The new contents are built; readers see the old ones.
    Building(Building<V>),
    /// The cache holds the list.
    Notifying {
        changes: std::vec::IntoIter<Change<V>>,
        /// The handlers that were there when the cache changed. Later ones are shown the list itself.
        handlers: HandlerRegistration,
    },
    /// The last sync resource version has moved; hooks are called.
    Ending(std::vec::IntoIter<Uid>),
}

struct Building<V> {
    replacement: Replacement<V>,
    rest: std::vec::IntoIter<Arc<V>>,
    changes: Vec<Change<V>>,
    /// The objects for which the function of an index has panicked.
    refused: BTreeSet<ObjectKey>,
}

impl<V: View> Building<V> {
    /// The contents and their changes, in which refused objects lack the new state.
    fn finished(self) -> (Replacement<V>, Vec<Change<V>>) {
        let Self { replacement, changes, refused, .. } = self;
        if refused.is_empty() {
            return (replacement, changes);
        }
        let is_refused = |change: &Change<V>| match change {
            Change::Added(new) | Change::Updated { new, .. } => refused.contains(&new.meta().key),
            Change::Undecodable { .. } | Change::Deleted { .. } => false,
        };
        let changes = changes.into_iter();
        let changes =
            changes.filter_map(|change| if is_refused(&change) { change.without_new() } else { Some(change) });
        (replacement, changes.collect())
    }
}

/// The result of a step of a commit.
pub(crate) enum CommitStep<V> {
    Continues,
    /// The cache holds the list now, and held these contents before.
    Exchanged(Replacement<V>),
    Ended,
}

impl<V: View> SharedInformer<V> {
    /// Begins to replace the contents of the cache by a complete list at that version.
    pub(crate) fn begin_commit(&self, staged: Staged<V>, version: ResourceVersion) -> Commit<V> {
        let first = self.last_sync_resource_version().is_unset();
        self.state.record.lock().lists += 1;
        self.state.metrics.listed(!first);
        let Staged { mut objects, mut undecodable_objects } = staged;
        for (object, error) in self.undecodable.new_of(&undecodable_objects) {
            self.report_undecodable(object.map(|object| object.key.clone()).as_ref(), &error);
        }
        for undecodable in undecodable_objects.iter() {
            // An object that became undecodable while it was listed.
            objects.remove_key(&undecodable.key);
            // Noted before the cache loses it, so that a reader finds it in one of both.
            self.undecodable.note(Undecodable::Named(Arc::clone(undecodable)));
        }
        let listed = objects.iter().map(|object| &object.meta().resource_version);
        self.state.currency.saw_list(&version, listed);
        let unlisted = self.last_states.take_unlisted(&objects, &undecodable_objects);
        let changes = self.store.changes_to(&objects).into_iter().map(|change| match change {
            Change::Deleted { last, .. } if undecodable_objects.may_hold(last.meta()) => Change::Undecodable { last },
            Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } | Change::Deleted { .. } => change,
        });
        let changes: Vec<_> = unlisted.into_iter().map(Change::missed_deletion).chain(changes).collect();
        let stage = if changes.len() <= IN_PLACE {
            self.with_handlers(|handlers, _| {
                let refuse = |object: &Arc<V>, panicked| self.refuse(object, &panicked, &mut undecodable_objects);
                let changes = self.store.apply(changes, refuse).into_iter();
                Stage::Notifying { changes, handlers: handlers.present() }
            })
        } else {
            let replacement = self.store.replacement(objects.len());
            let rest = objects.objects().into_iter();
            Stage::Building(Building { replacement, rest, changes, refused: BTreeSet::new() })
        };
        let origin = if first { Origin::Initial } else { Origin::Live };
        Commit { stage, list: Some((version, undecodable_objects)), origin, ended: Vec::new() }
    }

    /// Begins to rebuild the set of objects and all indexes, which a panic may have left incomplete.
    pub(crate) fn begin_rebuild(&self) -> Commit<V> {
        let objects = self.store.unsorted();
        let replacement = self.store.replacement(objects.len());
        let rest = objects.into_iter();
        let stage = Stage::Building(Building { replacement, rest, changes: Vec::new(), refused: BTreeSet::new() });
        Commit { stage, list: None, origin: Origin::Live, ended: Vec::new() }
    }

    /// Takes the next step of a commit. Returns the contents that it replaced, in the step in which it does so.
    pub(crate) fn continue_commit(&self, commit: &mut Commit<V>) -> CommitStep<V> {
        let Commit { stage, list, origin, ended } = commit;
        match stage {
            Stage::Building(building) => {
                for object in building.rest.by_ref().take(BUILT) {
                    if let Err(panicked) = building.replacement.put(&object) {
                        let mut unlisted = UndecodableObjects::default();
                        let undecodable = list.as_mut().map_or(&mut unlisted, |(_, undecodable)| undecodable);
                        self.refuse(&object, &panicked, undecodable);
                        building.refused.insert(object.meta().key.clone());
                    }
                }
                if !building.rest.as_slice().is_empty() {
                    return CommitStep::Continues;
                }
                let next = |handlers| Stage::Notifying { changes: Vec::new().into_iter(), handlers };
                self.with_handlers(|handlers, _| {
                    let present = handlers.present();
                    let Stage::Building(building) = std::mem::replace(stage, next(present)) else {
                        unreachable!("the stage was matched before");
                    };
                    let (replacement, changes) = building.finished();
                    let replaced = self.store.exchange(replacement);
                    *stage = Stage::Notifying { changes: changes.into_iter(), handlers: present };
                    CommitStep::Exchanged(replaced)
                })
            }
            Stage::Notifying { changes, handlers: present } => {
                self.with_handlers(|handlers, report| {
                    for change in changes.by_ref().take(NOTIFIED) {
                        self.last_states.follow(&change);
                        handlers.notify_before(*present, &change, *origin, report);
                        ended.extend(Self::ended_by(&change).cloned());
                    }
                });
                if !changes.as_slice().is_empty() {
                    return CommitStep::Continues;
                }
                let Some((version, undecodable_objects)) = list.take() else { return CommitStep::Ended };
                self.undecodable.replace(undecodable_objects, || ());
                let mut ended = std::mem::take(ended);
                let later = ended.split_off(ended.len().min(ENDED));
                self.progress(Some(version), &ended);
                if later.is_empty() {
                    return CommitStep::Ended;
                }
                *stage = Stage::Ending(later.into_iter());
                CommitStep::Continues
            }
            Stage::Ending(rest) => {
                let ended: Vec<Uid> = rest.by_ref().take(ENDED).collect();
                self.call_hooks(&ended);
                if rest.as_slice().is_empty() { CommitStep::Ended } else { CommitStep::Continues }
            }
        }
    }

    /// Notes an object of a list for which the function of an index has panicked.
    fn refuse(&self, object: &Arc<V>, panicked: &IndexPanicked, list: &mut UndecodableObjects) {
        let undecodable = unindexed(object, panicked);
        if let Undecodable::Named(object) = &undecodable {
            list.note(Undecodable::Named(Arc::clone(object)));
        }
        self.note(undecodable);
    }
}
