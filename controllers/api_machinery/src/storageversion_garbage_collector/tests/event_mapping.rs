//! Event mapping of Leases. What a storage version enqueues depends on the cache: see the tests on an API server.

use std::sync::Arc;

use kcm_framework::api::{ObjectKey, PartialObjectMeta, View as _};
use kcm_framework::informers::Change;
use serde_json::json;

use crate::storageversion_garbage_collector::event_mapping::key_for_lease;

#[test]
fn v2_a_deleted_lease_is_enqueued() {
    let lease = json!({ "metadata": { "name": "apiserver-1", "namespace": "kube-system" } });
    let lease = Arc::new(PartialObjectMeta::decode(&lease.to_string()).unwrap());
    let updated = Change::Updated { old: lease.clone(), new: lease.clone() };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(lease.clone()), false),
        ("updated", updated, false),
        ("deleted", Change::Deleted { last: lease.clone(), final_state_known: true }, true),
        ("its deletion was missed", Change::Deleted { last: lease.clone(), final_state_known: false }, true),
        ("undecodable", Change::Undecodable { last: lease }, false),
    ] {
        let key = ObjectKey::namespaced("kube-system", "apiserver-1");
        assert_eq!(key_for_lease(&change), is_enqueued.then_some(key), "{name}");
    }
}
