//! Event mapping.

use std::sync::Arc;

use kcm_framework::api::{ObjectKey, View as _};
use kcm_framework::informers::Change;
use serde_json::json;

use super::{signing, view};
use crate::bootstrap_signer::event_mapping::{keys_for_cluster_info, keys_for_token};
use crate::bootstrap_signer::plan::ClusterInfo;

fn key() -> ObjectKey {
    ObjectKey::namespaced("kube-public", "cluster-info")
}

#[test]
fn b1_cluster_info_is_enqueued_when_it_is_added_or_updated() {
    let object = json!({ "metadata": { "name": "cluster-info", "namespace": "kube-public" } });
    let object = Arc::new(ClusterInfo::decode(&object.to_string()).unwrap());
    let updated = Change::Updated { old: object.clone(), new: object.clone() };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(object.clone()), true),
        ("updated", updated, true),
        ("deleted", Change::Deleted { last: object.clone(), final_state_known: true }, false),
        ("undecodable", Change::Undecodable { last: object }, false),
    ] {
        assert_eq!(keys_for_cluster_info(&change), is_enqueued.then(key), "{name}");
    }
}

#[test]
fn b1_every_change_of_a_token_enqueues_cluster_info() {
    let token = view(&signing("abc123", ""));
    let updated = Change::Updated { old: token.clone(), new: token.clone() };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(token.clone()), true),
        ("updated", updated, true),
        ("deleted", Change::Deleted { last: token.clone(), final_state_known: true }, true),
        ("its deletion was missed", Change::Deleted { last: token.clone(), final_state_known: false }, true),
        ("undecodable", Change::Undecodable { last: token }, false),
    ] {
        assert_eq!(keys_for_token(&change), is_enqueued.then(key), "{name}");
    }
}
