//! The keys that a change enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;
use serde_json::json;

use super::{aggregated, role, view};
use crate::clusterrole_aggregation::event_mapping::keys_for_cluster_role;

#[test]
fn a_change_enqueues_the_aggregated_roles_that_select_the_role_before_or_after_it() {
    let (a, b) = (json!({ "to": "a" }), json!({ "to": "b" }));
    let all = [
        view(&aggregated("all-a", std::slice::from_ref(&a), &[])),
        view(&aggregated("all-b", std::slice::from_ref(&b), &[])),
    ];
    let (of_a, of_b, of_none) = (role("x", &a, &[]), role("x", &b, &[]), role("x", &json!({}), &[]));
    let updated = |old, new| Change::Updated { old: view(old), new: view(new) };
    for (name, change, expected) in [
        ("added", Change::Added(view(&of_a)), vec!["all-a"]),
        ("moved", updated(&of_a, &of_b), vec!["all-a", "all-b"]),
        ("released", updated(&of_a, &of_none), vec!["all-a"]),
        ("of none", Change::Added(view(&of_none)), vec![]),
        ("deleted", Change::Deleted { last: view(&of_b), final_state_known: false }, vec!["all-b"]),
        ("itself", Change::Added(view(&aggregated("all-b", &[], &[]))), vec!["all-b"]),
    ] {
        let keys = keys_for_cluster_role(&change, &all);
        assert_eq!(keys.iter().map(ObjectKey::name).collect::<Vec<_>>(), expected, "{name}");
    }
}
