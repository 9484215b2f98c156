//! The plan for a namespace: whether its account is created.

use kcm_framework::api::views::{Namespace, NamespacePhase};

pub(super) fn is_wanted(namespace: &Namespace, has_account: bool) -> bool {
    !has_account && namespace.phase == NamespacePhase::Active
}
