//! The annotations by which deployments and their replica sets keep revisions, sizes and notes of people.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kcm_api::Meta;

/// The revision of a replica set, and of the deployment that of its newest one.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The earlier revisions of a replica set that was rolled back to, oldest first, with commas between them.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The size of the deployment when the replica set was last scaled.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The most replicas that the deployment could then have.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// The revision that the deployment is to be rolled back to.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// What `kubectl apply` wrote last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations that are not copied between a deployment and its replica sets: each has its own.
const NOT_COPIED: [&str; 6] = [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO];

/// The longest history in characters, about a hundred revisions of nineteen digits.
const HISTORY_LIMIT: usize = 2000;

/// Annotations as a document has them.
pub(super) type Annotations<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

/// Annotations to put, by key.
pub(super) type Changes = BTreeMap<String, String>;

/// The revision of a replica set; absent where it is no number, 0 where there is none.
pub(super) fn revision_of(set: &Meta) -> Option<i64> {
    set.annotations.get(REVISION).map_or(Some(0), parse_revision)
}

/// The number of a revision annotation; absent where it is no number.
pub(super) fn parse_revision(revision: &str) -> Option<i64> {
    revision.parse().ok()
}

/// A size in the annotations of a replica set; absent where it is not a number from 0 on.
pub(super) fn size_of(set: &Meta, annotation: &str) -> Option<i32> {
    let text = set.annotations.get(annotation)?;
    // Rust reads a sign where Go does not.
    text.parse().ok().filter(|_| !text.starts_with(['+', '-']))
}

/// The revision that a deployment asks to be rolled back to; absent where it asks for none, or for what is no number.
pub(super) fn rollback_to(deployment: &Meta) -> Option<i64> {
    deployment.annotations.get(ROLLBACK_TO)?.parse().ok()
}

/// What changes in the annotations of the new replica set, so that it is of `revision` and has the deployment's notes.
///
/// The revision never falls: old sets may have been deleted since it was given. One that is no number is left alone,
/// and with it everything else. Notes that the deployment has lost stay.
///
/// # Upstream
/// `SetNewReplicaSetAnnotations`, but for the sizes.
pub(super) fn of_new_set(deployment: &Annotations<'_>, set: &Annotations<'_>, revision: i64) -> Changes {
    let present = set.get(REVISION).map_or("", |revision| revision);
    let before = match present.parse() {
        Ok(before) => before,
        Err(_) if present.is_empty() => 0,
        Err(_) => return Changes::new(),
    };
    let mut changes: Changes = deployment
        .iter()
        .filter(|(key, value)| is_copied(key) && set.get(*key) != Some(value))
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    if before < revision {
        changes.insert(REVISION.to_owned(), revision.to_string());
        let history = set.get(REVISION_HISTORY).map_or("", |history| history);
        if let Some(history) = history_with(history, present) {
            changes.insert(REVISION_HISTORY.to_owned(), history);
        }
    }
    changes
}

/// The history with one more revision; the oldest give way. Absent where there is nothing to add.
fn history_with(history: &str, revision: &str) -> Option<String> {
    if revision.is_empty() {
        return None;
    }
    let mut kept = history;
    while !kept.is_empty() && kept.len() + 1 + revision.len() > HISTORY_LIMIT {
        kept = kept.split_once(',').map_or("", |(_, rest)| rest);
    }
    Some(if kept.is_empty() { revision.to_owned() } else { format!("{kept},{revision}") })
}

/// The annotations of a replica set that is made or scaled.
pub(super) fn sizes(desired: i32, max: i32) -> Changes {
    [(DESIRED_REPLICAS, desired), (MAX_REPLICAS, max)].map(|(key, size)| (key.to_owned(), size.to_string())).into()
}

/// The annotations of a deployment that is rolled back to `set`: its own of the kinds that are not copied, without the
/// request, and the notes of the set.
///
/// With the set's old notes on the deployment, they are not overwritten by the present ones when it becomes the new
/// one.
pub(super) fn rolled_back<'a>(deployment: &Annotations<'a>, set: &Annotations<'a>) -> Annotations<'a> {
    let own = deployment.iter().filter(|(key, _)| !is_copied(key) && *key != ROLLBACK_TO);
    own.chain(set.iter().filter(|(key, _)| is_copied(key))).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn is_copied(key: &str) -> bool {
    !NOT_COPIED.contains(&key)
}
