//! Event mapping.

use std::sync::Arc;

use kcm_framework::api::{ObjectKey, PartialObjectMeta, View as _};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{address_json, cidr};
use crate::service_cidr::event_mapping::{keys_for_address, keys_for_cidr};

fn keys(names: &[&str]) -> Vec<ObjectKey> {
    names.iter().map(|name| ObjectKey::cluster_scoped(*name)).collect()
}

fn address(json: &Value) -> Arc<PartialObjectMeta> {
    Arc::new(PartialObjectMeta::decode(&json.to_string()).unwrap())
}

#[test]
fn a_service_cidr_that_is_added_enqueues_those_that_overlap() {
    let all = [
        cidr("a", &["10.0.0.0/16"]),
        cidr("b", &["10.0.1.0/24", "fd00::/64"]),
        cidr("c", &["fd00::/112"]),
        cidr("d", &["10.9.0.0/16"]),
        cidr("e", &["10.8.0.0/16"]),
        cidr("f", &["10.8.0.0/16"]),
    ];
    let added = |index: usize| Change::Added(Arc::clone(&all[index]));
    for (name, change, expected) in [
        ("added", added(1), &["b", "a", "c"][..]),
        ("added alone", added(3), &["d"]),
        ("of the same range", added(5), &["f", "e"]),
        ("updated", Change::Updated { old: Arc::clone(&all[1]), new: Arc::clone(&all[1]) }, &["b"]),
        ("deleted", Change::Deleted { last: Arc::clone(&all[1]), final_state_known: true }, &["b"]),
    ] {
        assert_eq!(keys_for_cidr(&change, || all.to_vec()), keys(expected), "{name}");
    }
}

#[test]
fn an_allocated_address_enqueues_the_service_cidrs_that_contain_it() {
    let all = [cidr("a", &["10.0.0.0/16"]), cidr("b", &["10.0.1.0/24", "fd00::/64"])];
    let allocated = || address(&address_json("10.0.1.7"));
    let mut of_others = address_json("10.0.1.7");
    of_others["metadata"]["labels"] = json!({});
    for (name, change, expected) in [
        ("taken", Change::Added(allocated()), &["a", "b"][..]),
        ("given back", Change::Deleted { last: allocated(), final_state_known: false }, &["a", "b"]),
        ("updated", Change::Updated { old: allocated(), new: allocated() }, &[]),
        ("of the other family", Change::Added(address(&address_json("fd00::7"))), &["b"]),
        ("the network address", Change::Added(address(&address_json("10.0.1.0"))), &["a"]),
        ("the broadcast address", Change::Added(address(&address_json("10.0.1.255"))), &["a"]),
        ("the network address of IPv6", Change::Added(address(&address_json("fd00::"))), &[]),
        ("the last address of IPv6", Change::Added(address(&address_json("fd00::ffff:ffff:ffff:ffff"))), &["b"]),
        ("in no range", Change::Added(address(&address_json("10.1.0.7"))), &[]),
        ("not allocated", Change::Added(address(&of_others)), &[]),
        ("no address", Change::Added(address(&address_json("web"))), &[]),
    ] {
        assert_eq!(keys_for_address(&change, || all.to_vec()), keys(expected), "{name}");
    }
}
