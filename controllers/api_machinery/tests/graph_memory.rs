//! Bytes that the graph of the garbage collector takes for each object, counted by the allocator.
//!
//! The graph is compiled into this test, as it is no part of the API of the crate.

#[allow(dead_code, unused_imports, reason = "only the memory of the graph is looked at here")]
#[path = "../src/garbage_collector/graph/mod.rs"]
mod graph;

use std::alloc::System;
use std::sync::Arc;

use graph::Graph;
use kcm_framework::api::{PartialObjectMeta, Resource, View as _};
use kcm_framework::informers::ObjectMeta;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const OBJECTS: usize = 20_000;

fn uid(number: usize) -> String {
    format!("{number:08}-2222-4333-8444-555555555555")
}

/// The object with that number, owned by the object `owner` gives it.
fn object(number: usize, owner: Option<usize>) -> Arc<dyn ObjectMeta> {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|owner| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "name": format!("pod-{owner}"), "uid": uid(owner),
                "controller": true, "blockOwnerDeletion": true,
            })
        })
        .collect();
    let object = json!({ "metadata": {
        "name": format!("pod-{number}"), "namespace": "shop", "uid": uid(number), "resourceVersion": "1",
        "ownerReferences": owners,
    } });
    Arc::new(PartialObjectMeta::decode(&object.to_string()).expect("it is an object"))
}

/// The bytes of a graph of objects whose owners `owner_of` gives, beside the objects themselves.
fn bytes(owner_of: impl Fn(usize) -> Option<usize>) -> usize {
    let resource = Arc::new(Resource::namespaced("", "v1", "pods", "Pod"));
    let objects: Vec<Arc<dyn ObjectMeta>> = (0..OBJECTS).map(|number| object(number, owner_of(number))).collect();
    let mut graph = Graph::default();
    let region = Region::new(ALLOCATOR);
    for object in &objects {
        drop(graph.observe(&resource, object));
    }
    let held = region.change();
    held.bytes_allocated - held.bytes_deallocated
}

// One test, since the allocator counts for the whole process.
#[test]
fn an_object_costs_little_beside_the_caches() {
    for (name, bytes, nodes, most) in [
        ("without owners", bytes(|_| None), OBJECTS, 150),
        ("fifty of each owner", bytes(|number| (number % 50 > 0).then_some(number / 50 * 50)), OBJECTS, 180),
        ("in chains", bytes(|number| number.checked_sub(1)), OBJECTS, 180),
        ("of owners that are only named", bytes(|number| Some(number + OBJECTS)), 2 * OBJECTS, 210),
    ] {
        assert!(bytes / nodes <= most, "{name}: {} bytes an object", bytes / nodes);
    }
}
