//! Whether a namespace lacks its account.

use kcm_api::views::{Namespace, NamespacePhase};

/// Whether the account is to be created: `namespace` is the one of the cache, and `has_account` whether it has the account.
pub(super) fn is_wanted(namespace: Option<&Namespace>, has_account: bool) -> bool {
    !has_account && namespace.is_some_and(|namespace| namespace.phase == NamespacePhase::Active)
}
