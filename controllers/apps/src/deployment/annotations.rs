//! The annotations of deployments and their replica sets: revisions, sizes and those that users set.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kcm_framework::api::Meta;

/// The revision of a replica set; on a deployment, that of its new replica set.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The earlier revisions of a replica set that was rolled back to, oldest first, separated by commas.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// `spec.replicas` of the deployment when the replica set was last scaled.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The most replicas that the deployment could have when the replica set was last scaled.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// The revision that a rollback of the deployment is requested to.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// The configuration that `kubectl apply` applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations that are not copied between a deployment and its replica sets.
const NOT_COPIED: [&str; 6] = [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO];

/// The longest revision history, in characters.
const HISTORY_LIMIT: usize = 2000;

/// The annotations of a document.
pub(super) type Annotations<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

/// Annotations to set, by key.
pub(super) type Changes = BTreeMap<String, String>;

/// The revision of a replica set: 0 without the annotation, absent if it is not a number.
pub(super) fn revision_of(set: &Meta) -> Option<i64> {
    set.annotations.get(REVISION).map_or(Some(0), parse_revision)
}

/// The value of a revision annotation; absent if it is not a number.
pub(super) fn parse_revision(revision: &str) -> Option<i64> {
    revision.parse().ok()
}

/// The value of a size annotation of a replica set; absent if it is not a number from 0 on.
pub(super) fn size_of(set: &Meta, annotation: &str) -> Option<i32> {
    let text = set.annotations.get(annotation)?;
    // Rust parses a sign; upstream accepts digits only.
    text.parse().ok().filter(|_| !text.starts_with(['+', '-']))
}

/// The revision that a rollback is requested to; absent without a request, or if it is not a number.
pub(super) fn rollback_to(deployment: &Meta) -> Option<i64> {
    deployment.annotations.get(ROLLBACK_TO)?.parse().ok()
}

/// The annotations that change on the new replica set: its revision, and those that it copies from the deployment.
///
/// A revision never decreases, as old replica sets may have been deleted since. If the present revision is not a number,
/// no annotation changes. Annotations that were removed from the deployment stay on the replica set.
///
/// # Upstream
/// `SetNewReplicaSetAnnotations`, without the sizes.
pub(super) fn new_replica_set_annotations(
    deployment: &Annotations<'_>,
    set: &Annotations<'_>,
    revision: i64,
) -> Changes {
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

/// The revision history with one more revision, without the oldest where it gets too long. Absent if nothing is added.
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

/// The size annotations of a replica set that is created or scaled.
pub(super) fn replicas_annotations(desired: i32, max: i32) -> Changes {
    [(DESIRED_REPLICAS, desired), (MAX_REPLICAS, max)].map(|(key, size)| (key.to_owned(), size.to_string())).into()
}

/// The annotations of a deployment that is rolled back to `set`: its own that are never copied, without the request, and
/// the others of the replica set.
///
/// The next reconcile copies the annotations of the deployment to the new replica set. They are those of `set` then, such
/// as its change cause.
pub(super) fn rolled_back<'a>(deployment: &Annotations<'a>, set: &Annotations<'a>) -> Annotations<'a> {
    let own = deployment.iter().filter(|(key, _)| !is_copied(key) && *key != ROLLBACK_TO);
    own.chain(set.iter().filter(|(key, _)| is_copied(key))).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn is_copied(key: &str) -> bool {
    !NOT_COPIED.contains(&key)
}
