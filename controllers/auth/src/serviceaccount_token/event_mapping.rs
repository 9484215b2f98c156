//! Event mapping: the secrets that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::{Meta, Uid};
use kcm_framework::informers::Change;

use super::key::TokenKey;
use super::secret::TokenSecret;
use crate::shared::ServiceAccount;

/// A secret is enqueued by every change if it names an account.
pub(super) fn keys_for_secret(change: &Change<TokenSecret>) -> Option<TokenKey> {
    match change {
        Change::Added(secret)
        | Change::Updated { new: secret, .. }
        | Change::Undecodable { last: secret }
        | Change::Deleted { last: secret, .. } => TokenKey::of(secret),
    }
}

/// An account that was deleted or recreated enqueues its secrets. `secrets` returns the secrets of its namespace.
pub(super) fn keys_for_account(
    change: &Change<ServiceAccount>,
    secrets: impl FnOnce() -> Vec<Arc<TokenSecret>>,
) -> Vec<TokenKey> {
    let uid = |account: &ServiceAccount| -> Uid { account.metadata.uid.clone() };
    let gone: &Meta = match change {
        Change::Deleted { last, .. } => &last.metadata,
        Change::Updated { old, new } if uid(old) != uid(new) => &old.metadata,
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => return Vec::new(),
    };
    let keys = secrets().into_iter().filter_map(|secret| TokenKey::of(&secret));
    keys.filter(|key| key.account() == gone.key && key.names(&gone.uid)).collect()
}
