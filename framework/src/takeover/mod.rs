//! Takeovers: the loops of a manager begin only on caches that show everything its predecessor wrote.
//!
//! ```text
//! predecessor: Handover ──versions──▶ lease ──▶ successor: start_loops_after(Predecessor)
//!                                                     │
//!                       proofs of all caches ◀────────┤
//!                              │ current              │ wait for the caches that they read
//!                              └────────────────────▶ loops
//! ```
//!
//! # Guarantees
//! - *No loop begins before each cache that it reads shows every write of the predecessor*, whether the predecessor
//!   released its lease or lost it.
//! - *A loop waits for the caches that it reads and for no others.*
//! - *A term may end while loops wait.*
//! - *A version that a predecessor hands over covers all of its writes or is missing*: a resource about which it is not sure
//!   is left out, and the successor proves its caches.

mod cache_versions;
mod driver;
mod handover;

use std::sync::Arc;

use kcm_api::Resource;
use kcm_informers::{HandedOver, Moment};
use tokio_util::sync::CancellationToken;

pub use cache_versions::CacheVersions;
pub(crate) use driver::prove_takeovers;
pub use handover::Handover;

/// The manager that acted before this manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Predecessor {
    /// Nothing is known about it: its lease expired, or it handed nothing over. Each cache proves that it is current.
    #[default]
    Unknown,
    /// It stopped, and handed these versions over. Caches of other resources prove that they are current.
    Released(Arc<CacheVersions>),
}

/// The takeover of some controllers from a predecessor.
#[derive(Debug)]
pub(crate) struct Takeover {
    /// Caches must hold everything that was written before this moment.
    pub(crate) since: Moment,
    pub(crate) predecessor: Predecessor,
    /// The controllers whose loops wait for it.
    pub(crate) controllers: Vec<&'static str>,
    /// Cancelled when the loops stop.
    pub(crate) ended: CancellationToken,
}

impl Takeover {
    /// The version that the predecessor handed over for a resource.
    pub(crate) fn handed_over(&self, resource: &Resource) -> HandedOver {
        let version = match &self.predecessor {
            Predecessor::Unknown => None,
            Predecessor::Released(versions) => versions.of(resource),
        };
        version.cloned().map_or(HandedOver::Nothing, HandedOver::Version)
    }
}
