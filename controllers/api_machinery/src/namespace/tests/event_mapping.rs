//! The keys that a change of a namespace enqueues.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::views::Namespace;
use kcm_framework::api::{ObjectKey, View as _};
use kcm_framework::informers::Change;
use serde_json::json;

use crate::namespace::event_mapping::keys_for_namespace;

fn namespace(is_terminating: bool) -> Arc<Namespace> {
    let mut object = json!({ "metadata": { "name": "shop" } });
    if is_terminating {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-02T12:00:00Z");
    }
    Arc::new(Namespace::decode(&object.to_string()).unwrap())
}

#[test]
fn a_terminating_namespace_is_enqueued_after_five_seconds_and_no_other_one_is() {
    let (active, terminating) = (namespace(false), namespace(true));
    let updated = |old: &Arc<Namespace>, new: &Arc<Namespace>| Change::Updated { old: old.clone(), new: new.clone() };
    for (name, change, is_enqueued) in [
        ("an active one is added", Change::Added(active.clone()), false),
        ("a terminating one is added", Change::Added(terminating.clone()), true),
        ("it is deleted", updated(&active, &terminating), true),
        ("it changes while it is terminating", updated(&terminating, &terminating), true),
        ("an active one changes", updated(&active, &active), false),
        ("it is gone", Change::Deleted { last: terminating, final_state_known: true }, false),
    ] {
        let expected = is_enqueued.then(|| Enqueue::after(ObjectKey::cluster_scoped("shop"), Duration::from_secs(5)));
        assert_eq!(keys_for_namespace(&change), expected, "{name}");
    }
}
