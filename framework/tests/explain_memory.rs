//! The memory that the journal of decisions takes, counted by the allocator.

use std::alloc::System;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{ObjectKey, ResourceVersion};
use kcm_framework::explain::{ChangeKind, Decision, Ended, Journal, Notes, Seen, Trigger, TriggerCause, WriteNote};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MEMORY: usize = 2 << 20;

/// As the replica set controller makes one: an event of a pod, a sentence, creations, their event, and a status.
fn decision(key: &ObjectKey, number: usize) -> Decision {
    let notes = Notes::new(true);
    notes.words(|| format!("creates 3 pods: {number} are wanted and 3 are active"));
    let pod = ObjectKey::namespaced("shop", format!("{}-{number:05}", key.name()));
    let creation =
        WriteNote { verb: "create", cache: Some(1), resource: &"pods", subresource: None, object: Some(&pod) };
    for _ in 0..3 {
        notes.wrote(creation, None);
        notes.recorded("SuccessfulCreate", &format!("Created pod: {}", pod.name()));
    }
    notes.wrote(WriteNote { verb: "update", cache: Some(0), object: Some(key), ..creation }, None);
    Decision {
        at: Timestamp::UNIX_EPOCH,
        took: Duration::from_millis(3),
        attempt: 1,
        triggers: Box::new([Trigger::of(TriggerCause::Event { cache: 1, change: ChangeKind::Updated }).about(pod)]),
        seen: Some(Seen::Version(ResourceVersion::default())),
        noted: notes.take(),
        ended: Ended::Succeeded { requeue_after: None },
    }
}

/// The bytes that a journal holds after decisions about so many keys, in turn.
fn held(keys: usize, decisions: usize) -> usize {
    let keys: Vec<_> = (0..keys).map(|at| ObjectKey::namespaced("shop", format!("web-{at:05}-6c9d7f5b8"))).collect();
    let region = Region::new(ALLOCATOR);
    let journal = Journal::new(MEMORY);
    for (number, key) in keys.iter().cycle().take(decisions).enumerate() {
        journal.add("replicaset", key, decision(key, number));
    }
    let change = region.change();
    assert!(journal.last("replicaset", &keys[(decisions - 1) % keys.len()]).is_some());
    change.bytes_allocated - change.bytes_deallocated
}

// One test, since the allocator counts for the whole process.
#[test]
fn the_journal_takes_the_memory_that_it_may_and_no_more() {
    for (keys, decisions) in [(1, 20_000), (100, 20_000), (5_000, 20_000), (20_000, 20_000)] {
        let held = held(keys, decisions);
        assert!(held <= MEMORY, "{held} bytes after {decisions} decisions about {keys} keys");
        assert!(
            held > MEMORY / 3,
            "{held} bytes after {decisions} decisions about {keys} keys: the estimate is too high"
        );
    }
}
