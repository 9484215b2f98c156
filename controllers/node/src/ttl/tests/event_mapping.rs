//! Keys that changes enqueue.

use kcm_framework::informers::Change;
use serde_json::json;

use crate::tests::{key, node_view};
use crate::ttl::event_mapping::keys_for_node;

#[test]
fn every_change_of_a_node_enqueues_it() {
    let node = || node_view(&json!({ "metadata": { "name": "a" } }));
    for (name, change) in [
        ("added", Change::Added(node())),
        ("updated", Change::Updated { old: node(), new: node() }),
        ("deleted: the size of the cluster changes", Change::Deleted { last: node(), final_state_known: true }),
    ] {
        assert_eq!(keys_for_node(&change), Some(key("a")), "{name}");
    }
}
