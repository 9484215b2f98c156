//! The namespaces that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::views::Namespace;
use kcm_framework::api::{ObjectKey, View as _};
use kcm_framework::informers::Change;
use serde_json::json;

use crate::root_ca_certificate_publisher::event_mapping::{keys_for_config_map, keys_for_namespace};
use crate::root_ca_certificate_publisher::plan::ConfigMap;

#[test]
fn a_namespace_is_enqueued_when_it_is_added_and_when_it_changes_while_it_is_active() {
    let namespace = |phase: &str| {
        let object = json!({ "metadata": { "name": "shop" }, "status": { "phase": phase } });
        Arc::new(Namespace::decode(&object.to_string()).unwrap())
    };
    let updated = |phase| Change::Updated { old: namespace("Active"), new: namespace(phase) };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(namespace("Active")), true),
        ("added while terminating", Change::Added(namespace("Terminating")), true),
        ("changed", updated("Active"), true),
        ("deleted", updated("Terminating"), false),
        ("gone", Change::Deleted { last: namespace("Terminating"), final_state_known: true }, false),
    ] {
        assert_eq!(keys_for_namespace(&change), is_enqueued.then(|| ObjectKey::cluster_scoped("shop")), "{name}");
    }
}

#[test]
fn a_config_map_that_is_changed_or_deleted_enqueues_its_namespace() {
    let object = json!({ "metadata": { "namespace": "shop", "name": "kube-root-ca.crt" } });
    let config_map = Arc::new(ConfigMap::decode(&object.to_string()).unwrap());
    let updated = Change::Updated { old: config_map.clone(), new: config_map.clone() };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(config_map.clone()), false),
        ("changed", updated, true),
        ("deleted", Change::Deleted { last: config_map, final_state_known: false }, true),
    ] {
        assert_eq!(keys_for_config_map(&change), is_enqueued.then(|| ObjectKey::cluster_scoped("shop")), "{name}");
    }
}
