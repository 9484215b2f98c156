//! The changes for which an event handler has panicked.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, View};
use tokio::time::Instant;

use crate::change::{Change, Origin};

/// Time after which a handler is notified again of a change for which it has panicked. It doubles with each panic.
const FIRST_RETRY: Duration = Duration::from_secs(1);

const LONGEST_RETRY: Duration = Duration::from_mins(5);

/// Largest number of changes that are repeated in one step.
const RETRIES: usize = 64;

/// Largest number of changes of one object that are kept. Beyond it the first changes are merged.
const LONGEST: usize = 16;

/// The changes that one handler has missed, by object.
pub(crate) struct Missed<V>(BTreeMap<ObjectKey, MissedChanges<V>>);

struct MissedChanges<V> {
    /// In their order. Empty while the handler is being notified of them.
    changes: Vec<Change<V>>,
    origin: Origin,
    due: Instant,
    delay: Duration,
}

impl<V> Default for Missed<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: View> Missed<V> {
    /// Returns what the handler must be notified of instead of `change`: what it has missed of that object, and this change.
    /// `None` if it has missed nothing.
    pub(crate) fn with(&mut self, change: &Change<V>, origin: Origin) -> Option<Vec<Change<V>>> {
        if self.0.is_empty() {
            return None;
        }
        let missed = self.0.get_mut(change.key())?;
        let mut changes = mem::take(&mut missed.changes);
        match origin {
            // Nothing changed.
            Origin::Resync => {}
            Origin::Initial | Origin::Live => changes.push(change.clone()),
        }
        Some(changes)
    }

    /// Keeps the changes of an object that the handler has not taken, the last of them with this origin. Returns the time
    /// until they are repeated, or `None` if they are given up: changes of a deleted object are not kept for ever.
    pub(crate) fn keep(
        &mut self,
        key: &ObjectKey,
        mut changes: Vec<Change<V>>,
        origin: Origin,
        now: Instant,
    ) -> Option<Duration> {
        let (delay, origin) = match self.0.get(key) {
            Some(earlier) => {
                let is_live = earlier.origin == Origin::Live;
                ((earlier.delay * 2).min(LONGEST_RETRY), if is_live { Origin::Live } else { origin })
            }
            None => (FIRST_RETRY, origin),
        };
        let is_deleted = changes.iter().all(|change| matches!(change, Change::Deleted { .. }));
        if is_deleted && delay == LONGEST_RETRY {
            self.0.remove(key);
            return None;
        }
        merge_first(&mut changes);
        self.0.insert(key.clone(), MissedChanges { changes, origin, due: now + delay, delay });
        Some(delay)
    }

    /// Forgets what the handler has taken now.
    pub(crate) fn succeeded(&mut self, key: &ObjectKey) {
        if !self.0.is_empty() {
            self.0.remove(key);
        }
    }

    /// Takes what is due at `now` of the first objects.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(Vec<Change<V>>, Origin)> {
        let due = self.0.values_mut().filter(|missed| missed.due <= now).take(RETRIES);
        due.map(|missed| (mem::take(&mut missed.changes), missed.origin)).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|missed| missed.due).min()
    }
}

/// Notifies a handler of successive changes of one object. Returns those that it has not taken; `takes` returns `false` for
/// a change for which it panics.
///
/// The handler gets no state of an object before it has taken the earlier ones, except for its end, which does not wait: it is
/// then told the states that it has missed as ends too, because each of them may name another owner.
pub(crate) fn notify_in_order<V: View>(
    changes: Vec<Change<V>>,
    mut takes: impl FnMut(&Change<V>) -> bool,
) -> Vec<Change<V>> {
    let (mut left, mut of_this_life) = (Vec::new(), Vec::new());
    for change in changes {
        let ends = change.ends();
        if (of_this_life.is_empty() || ends) && takes(&change) {
            for missed in of_this_life.drain(..) {
                left.extend(states_before(missed, &change).into_iter().filter(|end| !takes(end)));
            }
        } else {
            of_this_life.push(change);
            if ends {
                left.append(&mut of_this_life);
            }
        }
    }
    left.append(&mut of_this_life);
    left
}

/// The states of a change that the end of the object does not show, as ends.
fn states_before<V>(missed: Change<V>, end: &Change<V>) -> Vec<Change<V>> {
    let states = match missed {
        Change::Added(object) | Change::Undecodable { last: object } | Change::Deleted { last: object, .. } => {
            vec![object]
        }
        Change::Updated { old, new } => vec![old, new],
    };
    let states = states.into_iter().filter(|state| !Arc::ptr_eq(state, end.object()));
    states.map(|state| end.of(state)).collect()
}

/// Merges the first changes of more than [`LONGEST`].
fn merge_first<V>(changes: &mut Vec<Change<V>>) {
    while changes.len() > LONGEST {
        let first = changes.remove(0);
        if let (Some(Change::Updated { new, .. }), Change::Added(_) | Change::Updated { .. }) =
            (changes.first(), &first)
        {
            let new = Arc::clone(new);
            changes[0] = match first {
                Change::Updated { old, .. } => Change::Updated { old, new },
                Change::Added(_) | Change::Undecodable { .. } | Change::Deleted { .. } => Change::Added(new),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use kcm_api::PartialObjectMeta;

    use super::*;

    /// Objects of one name, by the number of their state.
    fn states() -> Vec<Arc<PartialObjectMeta>> {
        let object = r#"{"metadata":{"name":"a","namespace":"b","uid":"u"}}"#;
        (0..40).map(|_| Arc::new(PartialObjectMeta::decode(object).unwrap())).collect()
    }

    /// A change such as `added 1`, `updated 1 2`, `undecodable 2`, `deleted 2`.
    fn parse(text: &str, states: &[Arc<PartialObjectMeta>]) -> Change<PartialObjectMeta> {
        let mut words = text.split(' ');
        let kind = words.next().unwrap();
        let mut state = || Arc::clone(&states[words.next().unwrap().parse::<usize>().unwrap()]);
        match kind {
            "added" => Change::Added(state()),
            "updated" => Change::Updated { old: state(), new: state() },
            "undecodable" => Change::Undecodable { last: state() },
            "deleted" => Change::missed_deletion(state()),
            _other => panic!("{text}"),
        }
    }

    fn print(change: &Change<PartialObjectMeta>, states: &[Arc<PartialObjectMeta>]) -> String {
        let state = |of: &Arc<PartialObjectMeta>| states.iter().position(|state| Arc::ptr_eq(state, of)).unwrap();
        match change {
            Change::Added(object) => format!("added {}", state(object)),
            Change::Updated { old, new } => format!("updated {} {}", state(old), state(new)),
            Change::Undecodable { last } => format!("undecodable {}", state(last)),
            Change::Deleted { last, .. } => format!("deleted {}", state(last)),
        }
    }

    #[test]
    fn a_handler_is_told_each_state_of_an_object_whatever_it_panics_for() {
        struct Row {
            changes: &'static [&'static str],
            panics_for: &'static [&'static str],
            told: &'static [&'static str],
            left: &'static [&'static str],
        }
        for Row { changes, panics_for, told, left } in [
            Row { changes: &["added 1", "updated 1 2"], panics_for: &[], told: &["added 1", "updated 1 2"], left: &[] },
            // No state before the earlier ones.
            Row {
                changes: &["added 1", "updated 1 2"],
                panics_for: &["added 1"],
                told: &["added 1"],
                left: &["added 1", "updated 1 2"],
            },
            Row {
                changes: &["updated 1 2", "updated 2 3"],
                panics_for: &["updated 2 3"],
                told: &["updated 1 2", "updated 2 3"],
                left: &["updated 2 3"],
            },
            // The end does not wait. Earlier states are passed to the handler as ends, because state 1 may have another owner.
            Row {
                changes: &["updated 1 2", "deleted 2"],
                panics_for: &["updated 1 2"],
                told: &["updated 1 2", "deleted 2", "deleted 1"],
                left: &[],
            },
            Row {
                changes: &["updated 1 2", "updated 2 3", "undecodable 3"],
                panics_for: &["updated 1 2", "undecodable 1"],
                told: &["updated 1 2", "undecodable 3", "undecodable 1", "undecodable 2", "undecodable 2"],
                left: &["undecodable 1"],
            },
            Row {
                changes: &["updated 1 2", "deleted 2"],
                panics_for: &["updated 1 2", "deleted 2"],
                told: &["updated 1 2", "deleted 2"],
                left: &["updated 1 2", "deleted 2"],
            },
            // A new object of the name waits for nothing.
            Row {
                changes: &["deleted 1", "added 2", "updated 2 3"],
                panics_for: &["deleted 1"],
                told: &["deleted 1", "added 2", "updated 2 3"],
                left: &["deleted 1"],
            },
        ] {
            let states = states();
            let mut calls = Vec::new();
            let remaining = notify_in_order(changes.iter().map(|it| parse(it, &states)).collect(), |change| {
                let change = print(change, &states);
                calls.push(change.clone());
                !panics_for.contains(&&*change)
            });
            assert_eq!(calls, told, "{changes:?}");
            let remaining: Vec<_> = remaining.iter().map(|it| print(it, &states)).collect();
            assert_eq!(remaining, left, "{changes:?}");
        }
    }

    #[test]
    fn the_first_of_many_changes_are_merged() {
        let states = states();
        let mut updates: Vec<_> = (1..30).map(|at| parse(&format!("updated {at} {}", at + 1), &states)).collect();
        merge_first(&mut updates);
        assert_eq!(updates.len(), LONGEST);
        assert_eq!(print(&updates[0], &states), "updated 1 15");
        assert_eq!(print(&updates[LONGEST - 1], &states), "updated 29 30");
        updates.insert(0, parse("added 1", &states));
        merge_first(&mut updates);
        assert_eq!(print(&updates[0], &states), "added 15");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_is_repeated_for_some_minutes_and_another_change_for_ever() {
        let states = states();
        for (change, is_given_up) in [("deleted 1", true), ("updated 1 2", false)] {
            let (mut missed, change) = (Missed::default(), parse(change, &states));
            let mut delays = Vec::new();
            for _ in 0..20 {
                let kept = missed.keep(change.key(), vec![change.clone()], Origin::Live, Instant::now());
                let Some(delay) = kept else { break };
                delays.push(delay.as_secs());
                tokio::time::advance(delay).await;
                assert_eq!(missed.due(Instant::now()).len(), 1);
            }
            let expected: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 300];
            assert_eq!(delays[..9], expected[..9]);
            assert_eq!(delays.len(), if is_given_up { 9 } else { 20 });
            assert_eq!(missed.next_due().is_none(), is_given_up);
        }
    }
}
