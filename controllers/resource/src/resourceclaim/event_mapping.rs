//! Event mapping: the keys that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::PartReader;
use kcm_framework::api::views::{Pod, PodClaims, PodGroup, ResourceClaim};
use kcm_framework::informers::Change;

use super::deleted::DeletedConsumers;
use super::key::Key;
use super::template::ClaimTemplate;
use super::work::is_done;
use crate::shared::{EntryClaim, beside, used_claims};

/// Pods and groups that use something, and have work.
#[derive(Debug, Default)]
pub(super) struct Users {
    pub(super) pods: Vec<ObjectKey>,
    pub(super) groups: Vec<ObjectKey>,
}

impl Users {
    fn keys(self) -> impl Iterator<Item = Key> {
        self.groups.into_iter().map(Key::Group).chain(self.pods.into_iter().map(Key::Pod))
    }
}

/// A Pod enqueues its claims when it does not need them any more, and itself when it has work.
pub(super) fn keys_for_pod(
    change: &Change<Pod>,
    claims: PartReader<PodClaims>,
    deleted: &DeletedConsumers,
    has_work: impl Fn(&Pod) -> bool,
) -> Vec<Key> {
    let claim_keys = |pod: &Pod| -> Vec<Key> { claims_of(pod, claims.of(pod)).map(Key::Claim).collect() };
    let of_present = |pod: &Arc<Pod>| {
        let used = claims.of(pod);
        if used.entries.is_empty() && used.extended.is_none() {
            return Vec::new();
        }
        let mut keys = if is_done(pod) { claim_keys(pod) } else { Vec::new() };
        keys.extend(has_work(pod).then(|| Key::Pod(pod.metadata.key.clone())));
        keys
    };
    match change {
        Change::Added(pod) => of_present(pod),
        Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => {
            let mut keys = claim_keys(old);
            if !keys.is_empty() {
                deleted.insert(&old.metadata.uid);
            }
            keys.extend(of_present(new));
            keys
        }
        Change::Updated { old, new } => {
            let reads = |pod: &Pod| (pod.node_name.clone(), pod.metadata.is_terminating(), pod.is_finished());
            let is_same = reads(old) == reads(new) && claims.of(old) == claims.of(new);
            if is_same { Vec::new() } else { of_present(new) }
        }
        Change::Deleted { last, final_state_known } => {
            let keys = claim_keys(last);
            // A deletion that was only concluded from a list is read live.
            if *final_state_known && !keys.is_empty() {
                deleted.insert(&last.metadata.uid);
            }
            keys
        }
        Change::Undecodable { .. } => Vec::new(),
    }
}

/// A claim enqueues itself, and the Pods and groups that use it and have work. A deletion enqueues it too, so that nothing
/// is kept for it.
pub(super) fn keys_for_claim(change: &Change<ResourceClaim>, users: impl Fn(&ObjectKey) -> Users) -> Vec<Key> {
    let key = change.key();
    match change {
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => {
            [Key::Claim(key.clone())].into_iter().chain(users(key).keys()).collect()
        }
        Change::Undecodable { .. } => Vec::new(),
    }
}

/// A template that is created or updated enqueues the Pods and groups that name it and have work.
pub(super) fn keys_for_template(change: &Change<ClaimTemplate>, users: impl Fn(&ObjectKey) -> Users) -> Vec<Key> {
    match change {
        Change::Added(_) | Change::Updated { .. } => users(change.key()).keys().collect(),
        Change::Deleted { .. } | Change::Undecodable { .. } => Vec::new(),
    }
}

/// A group enqueues itself when it has work, its Pods that have work, and its claims when it is deleted.
pub(super) fn keys_for_group(
    change: &Change<PodGroup>,
    deleted: &DeletedConsumers,
    has_work: impl Fn(&PodGroup) -> bool,
    pods: impl Fn(&ObjectKey) -> Vec<ObjectKey>,
) -> Vec<Key> {
    let claim_keys = |group: &PodGroup| -> Vec<Key> { claims_of_group(group).map(Key::Claim).collect() };
    let mut keys = Vec::new();
    let present = match change {
        Change::Added(group) => Some(group),
        Change::Updated { old, new } => {
            if old.metadata.uid != new.metadata.uid {
                deleted.insert(&old.metadata.uid);
                keys.extend(claim_keys(old));
            }
            Some(new)
        }
        Change::Deleted { last, final_state_known } => {
            if *final_state_known {
                deleted.insert(&last.metadata.uid);
            }
            keys.extend(claim_keys(last));
            None
        }
        Change::Undecodable { .. } => return keys,
    };
    keys.extend(present.filter(|group| has_work(group)).map(|group| Key::Group(group.metadata.key.clone())));
    keys.extend(pods(change.key()).into_iter().map(Key::Pod));
    keys
}

/// Returns the keys of the claims that a Pod uses. The claim of its extended resources is one of them.
pub(super) fn claims_of<'a>(pod: &'a Pod, claims: &'a PodClaims) -> impl Iterator<Item = ObjectKey> + 'a {
    used_claims(claims).map(|(claim, _)| beside(&pod.metadata.key, claim))
}

/// Returns the keys of the claims that a group names.
pub(super) fn claims_of_group(group: &PodGroup) -> impl Iterator<Item = ObjectKey> {
    let named = group.claims.iter().filter_map(|entry| EntryClaim::of(entry.into(), &group.claim_statuses).named());
    named.map(|(claim, _)| beside(&group.metadata.key, claim))
}
