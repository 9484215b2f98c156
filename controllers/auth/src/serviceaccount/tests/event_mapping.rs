//! The namespaces that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::{ObjectKey, View as _};
use kcm_framework::informers::Change;
use serde_json::json;

use super::namespace;
use crate::serviceaccount::event_mapping::{keys_for_account, keys_for_namespace};
use crate::shared::ServiceAccount;

#[test]
fn a_namespace_is_enqueued_when_it_is_added_or_changes() {
    let updated = Change::Updated { old: namespace("Active"), new: namespace("Active") };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(namespace("Active")), true),
        ("changed", updated, true),
        ("gone", Change::Deleted { last: namespace("Terminating"), final_state_known: true }, false),
    ] {
        assert_eq!(keys_for_namespace(&change), is_enqueued.then(|| ObjectKey::cluster_scoped("shop")), "{name}");
    }
}

#[test]
fn the_deletion_of_an_account_enqueues_its_namespace() {
    let object = json!({ "metadata": { "namespace": "shop", "name": "default" } });
    let account = Arc::new(ServiceAccount::decode(&object.to_string()).unwrap());
    let updated = Change::Updated { old: account.clone(), new: account.clone() };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(account.clone()), false),
        ("changed", updated, false),
        ("deleted", Change::Deleted { last: account, final_state_known: false }, true),
    ] {
        assert_eq!(keys_for_account(&change), is_enqueued.then(|| ObjectKey::cluster_scoped("shop")), "{name}");
    }
}
