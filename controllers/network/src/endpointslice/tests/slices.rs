//! Which changes of slices enqueue their service.

use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::super::MANAGED_BY;
use super::slice;
use crate::shared::slices::{OwnWrites, keys_for_slice};
use crate::shared::tests::merge;

fn object(change: &Value) -> Arc<EndpointSlice> {
    slice("web-0", &[], change).object
}

fn labelled(label: &str, value: &Value) -> Arc<EndpointSlice> {
    object(&json!({ "metadata": { "resourceVersion": "8", "labels": { label: value } } }))
}

fn keys(change: &Change<EndpointSlice>, own_writes: &OwnWrites) -> Vec<String> {
    keys_for_slice(change, MANAGED_BY, own_writes).iter().map(|key| key.name().to_owned()).collect()
}

#[test]
fn changes_by_other_clients_enqueue_the_services_that_the_label_names() {
    let by_another = json!("another.example.com");
    let (managed_by, service) = ("endpointslice.kubernetes.io/managed-by", "kubernetes.io/service-name");
    let mine = || object(&json!({}));
    let next = |metadata: Value| {
        let mut change = json!({ "resourceVersion": "8" });
        merge(&mut change, &metadata);
        object(&json!({ "metadata": change }))
    };
    let foreign = || labelled(managed_by, &by_another);
    let updated = |old, new| Change::Updated { old, new };
    let deleted = |last| Change::Deleted { last, final_state_known: true };
    for (name, change, expected) in [
        ("added", Change::Added(mine()), vec!["web"]),
        ("added by another controller", Change::Added(foreign()), vec![]),
        ("without the name of a service", Change::Added(labelled(service, &json!(""))), vec![]),
        ("updated", updated(mine(), next(json!({ "generation": 2 }))), vec!["web"]),
        ("annotated", updated(mine(), next(json!({ "annotations": { "a": "b" } }))), vec![]),
        ("moved to another service", updated(mine(), labelled(service, &json!("other"))), vec!["web", "other"]),
        ("given to another controller", updated(mine(), foreign()), vec!["web"]),
        ("taken from another controller", updated(foreign(), mine()), vec!["web"]),
        ("updated by another controller", updated(foreign(), foreign()), vec![]),
        ("deleted", deleted(mine()), vec!["web"]),
        ("deleted by another controller", deleted(foreign()), vec![]),
    ] {
        assert_eq!(keys(&change, &OwnWrites::default()), expected, "{name}");
    }
}

#[test]
fn own_writes_enqueue_nothing() {
    let own_writes = OwnWrites::default();
    let version = |version: &str| {
        let generation: i64 = version.parse().unwrap();
        object(&json!({ "metadata": { "resourceVersion": version, "generation": generation } }))
    };
    let wrote = |slice: &EndpointSlice| {
        own_writes.wrote(slice.metadata.uid.clone(), slice.metadata.resource_version.clone());
    };
    wrote(&version("7"));
    assert!(keys(&Change::Added(version("7")), &own_writes).is_empty());
    wrote(&version("8"));
    assert!(keys(&Change::Updated { old: version("7"), new: version("8") }, &own_writes).is_empty());
    assert_eq!(
        keys(&Change::Updated { old: version("8"), new: version("9") }, &own_writes),
        ["web"],
        "by another client"
    );
    own_writes.deleted(&version("9").metadata.uid);
    let gone = || Change::Deleted { last: version("9"), final_state_known: true };
    assert!(keys(&gone(), &own_writes).is_empty());
    assert_eq!(keys(&gone(), &own_writes), ["web"], "a deletion counts once");
}
