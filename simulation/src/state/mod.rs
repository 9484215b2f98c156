//! The state of a run as a number that two runs share if they are in the same state up to renaming.
//!
//! [`masked`] removes from the objects of the store what differs between two equal runs: uids, resource versions,
//! times, addresses and generated names. Objects with generated names are told apart by their [colours]: by
//! their content and by the objects that they refer to or that refer to them. [`digest`] adds what is beside the store:
//! the queues, the events under way, the requests in flight and the processes.
//!
//! ```text
//! Objects ──masked──▶ content and references ──colours──▶ a multiset ──digest──▶ Digest
//! Surroundings ───────────────────────────────────────────────────────────┘
//! ```
//!
//! # Guarantees
//! The digest does not depend on the names that were generated, on uids, or on the order in which objects were created.
//! Two states with different digests differ. Controllers with hidden memory may differ in states with equal digests.

mod colours;
mod digest;
mod mask;
#[cfg(test)]
mod tests;

pub use colours::{Colour, colours};
pub use digest::{Digest, EventOnTheWay, KeyInQueue, LoopQueue, ProcessState, RequestInFlight, Surroundings, digest};
pub use mask::{Masked, masked, normal_form};

use kcm_framework::api::Fnv1a;

/// Mixes a hash, so that values which differ in one bit are not alike.
const fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// The hash of some parts in their order.
fn hash_of(subject: &str, parts: impl IntoIterator<Item = u64>) -> u64 {
    let start = Fnv1a::new().part(subject);
    mixed(parts.into_iter().fold(start, |hash, part| hash.bytes(&part.to_le_bytes())).value())
}

/// The hash of some parts in any order, each as often as it occurs.
fn hash_of_multiset(subject: &str, parts: impl IntoIterator<Item = u64>) -> u64 {
    let mut parts: Vec<u64> = parts.into_iter().collect();
    parts.sort_unstable();
    hash_of(subject, parts)
}

fn hash_of_text(text: &str) -> u64 {
    mixed(Fnv1a::new().part(text).value())
}
