//! Event mapping: a token is enqueued when it is added or updated.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use crate::shared::BootstrapToken;

pub(super) fn keys_for_token(change: &Change<BootstrapToken>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}
