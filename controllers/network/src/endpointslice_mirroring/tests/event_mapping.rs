//! Which changes enqueue which endpoints.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::Endpoints;
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::super::event_mapping::{keys_for_endpoints, keys_for_service};
use crate::shared::tests::service;

fn endpoints(metadata: &Value) -> Arc<Endpoints> {
    let mut object = json!({ "metadata": { "namespace": "shop", "name": "web" } });
    crate::shared::tests::merge(&mut object["metadata"], metadata);
    let needs =
        [kcm_framework::api::Need::annotation::<kcm_framework::api::views::EndpointsView>(super::super::LEADER)];
    let context = kcm_framework::api::DecodeContext::new::<Endpoints>(Arc::default(), &needs.into_iter().collect());
    Arc::new(Arc::new(context).scope(|| Endpoints::decode(&object.to_string())).unwrap())
}

#[test]
fn endpoints_are_enqueued_where_they_are_mirrored_or_were() {
    let plain = || endpoints(&json!({}));
    let skipped = || endpoints(&json!({ "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } }));
    let leader = || endpoints(&json!({ "annotations": { "control-plane.alpha.kubernetes.io/leader": "{}" } }));
    let not_skipped = || endpoints(&json!({ "labels": { "endpointslice.kubernetes.io/skip-mirror": "false" } }));
    let updated = |old, new| Change::Updated { old, new };
    for (name, change, expected) in [
        ("added", Change::Added(plain()), true),
        ("added, skipped", Change::Added(skipped()), false),
        ("added, the label is false", Change::Added(not_skipped()), true),
        ("a leader", Change::Added(leader()), false),
        ("a leader renews", updated(leader(), leader()), false),
        ("skipped from now on", updated(plain(), skipped()), true),
        ("mirrored from now on", updated(skipped(), plain()), true),
        ("deleted", Change::Deleted { last: plain(), final_state_known: true }, true),
        ("deleted, skipped", Change::Deleted { last: skipped(), final_state_known: true }, false),
    ] {
        assert_eq!(keys_for_endpoints(&change).is_some(), expected, "{name}");
    }
}

#[test]
fn services_enqueue_endpoints_where_they_select_no_pods_or_begin_or_cease_to() {
    let selecting = || service("web", &json!({ "selector": { "app": "web" } }));
    let plain = || service("web", &json!({}));
    let updated = |old, new| Change::Updated { old, new };
    for (name, change, expected) in [
        ("added", Change::Added(plain()), true),
        ("added, selecting", Change::Added(selecting()), false),
        ("another change", updated(plain(), plain()), false),
        ("begins to select", updated(plain(), selecting()), true),
        ("ceases to select", updated(selecting(), plain()), true),
        ("deleted", Change::Deleted { last: plain(), final_state_known: true }, true),
        ("deleted, selecting", Change::Deleted { last: selecting(), final_state_known: true }, false),
    ] {
        assert_eq!(keys_for_service(&change).is_some(), expected, "{name}");
    }
}
