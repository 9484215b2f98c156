//! The keys of the queue.

use std::fmt;

use kcm_framework::QueueKey;
use kcm_framework::api::{InternedStr, ObjectKey, Uid};

use super::secret::TokenSecret;

/// A secret and the account that it names: enough to process its deletion.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TokenKey {
    /// Namespace and name of the secret.
    pub(super) secret: ObjectKey,
    /// The uid of the secret.
    pub(super) uid: Uid,
    /// The name of the account.
    account: InternedStr,
    /// The uid of the account; unset if the secret names none.
    pub(super) account_uid: Uid,
}

impl TokenKey {
    /// The key of a secret; `None` if it names no account.
    pub(super) fn of(secret: &TokenSecret) -> Option<Self> {
        let account = secret.account();
        if account.is_empty() {
            return None;
        }
        let metadata = &secret.metadata;
        let (key, uid) = (metadata.key.clone(), metadata.uid.clone());
        Some(Self { secret: key, uid, account, account_uid: secret.account_uid() })
    }

    /// Namespace and name of the account.
    pub(super) fn account(&self) -> ObjectKey {
        ObjectKey::namespaced(self.secret.namespace().unwrap_or_default(), self.account.as_str())
    }

    /// Whether the secret names the account with that uid.
    pub(super) fn names(&self, account: &Uid) -> bool {
        self.account_uid.is_unset() || self.account_uid == *account
    }
}

impl fmt::Display for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.secret.fmt(f)
    }
}

impl QueueKey for TokenKey {
    fn object(&self) -> Option<&ObjectKey> {
        Some(&self.secret)
    }
}
