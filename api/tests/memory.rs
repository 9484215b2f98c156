//! Bytes per cached object, counted by the allocator.

use std::alloc::System;
use std::sync::Arc;

use kcm_api::views::{Pod, ReplicaSet};
use kcm_api::{Interner, View};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const POD: &str = include_str!("../fixtures/pod.json");
const REPLICA_SET: &str = include_str!("../fixtures/replica_set.json");

/// Bytes and allocations for each of 2,000 objects that differ in name and uid, as a cache holds them.
fn cost_of<V: View>(json: &str, name: &str, uid: &str) -> (usize, usize) {
    const OBJECTS: usize = 2000;
    let texts: Vec<String> = (0..OBJECTS)
        .map(|number| {
            json.replace(name, &format!("{name}-{number:04}")).replace(uid, &format!("{number:08}{}", &uid[8..]))
        })
        .collect();
    let interner = Arc::new(Interner::default());
    let mut cache = Vec::with_capacity(OBJECTS);
    let region = Region::new(ALLOCATOR);
    interner
        .scope(|| cache.extend(texts.iter().map(|json| Arc::new(V::decode(json).expect("the fixture must decode")))));
    let held = region.change();
    ((held.bytes_allocated - held.bytes_deallocated) / OBJECTS, (held.allocations - held.deallocations) / OBJECTS)
}

// One test, since the allocator counts for the whole process.
#[test]
fn cached_objects_are_small() {
    let (bytes, allocations) = cost_of::<Pod>(POD, "checkout-7d9c5b8f6d-x2k9w", "6f1e2d3c-4b5a-4978-8a6b-5c4d3e2f1a0b");
    assert!(bytes <= 700, "{bytes} bytes in {allocations} allocations per pod");

    let uid = "0d1b6c1e-0f5b-4f0e-9a5e-5a6b7c8d9e0f";
    let (bytes, allocations) = cost_of::<ReplicaSet>(REPLICA_SET, r#""name":"checkout-7d9c5b8f6d"#, uid);
    assert!(bytes <= REPLICA_SET.len() + 1024, "{bytes} bytes in {allocations} allocations per replica set");
}
