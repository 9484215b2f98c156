//! The context that the sessions of one loop share.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::Resource;
use kcm_client::Cause;
use kcm_client::clock::Clock;

use super::NameGenerator;
use crate::events::Recorder;
use crate::explain::Journal;
use crate::first_failure::FirstFailure;

/// The context that the sessions of one loop share, besides clients and caches.
#[derive(Clone)]
pub(crate) struct LoopContext {
    /// The name of the loop.
    pub(crate) name: &'static str,
    /// The resources to which the loop writes.
    pub(crate) writes: DeclaredWrites,
    /// The generator of names for new objects.
    pub(crate) names: NameGenerator,
    pub(crate) clock: Arc<dyn Clock>,
    /// The recorder of the controller.
    pub(crate) recorder: Recorder,
    /// The decisions about keys.
    pub(crate) journal: Arc<Journal>,
    /// The record of panics.
    pub(crate) failures: FirstFailure,
}

/// The resources to which a loop writes.
#[derive(Debug, Clone)]
pub(crate) enum DeclaredWrites {
    /// Any resource that discovery finds.
    Anything,
    /// The resources that it reads or declares to write.
    Only(BTreeSet<Resource>),
}

impl LoopContext {
    /// Refuses a write to a resource that the loop does not declare.
    pub(super) fn check_write(&self, resource: &Resource) -> Result<(), Cause> {
        match &self.writes {
            DeclaredWrites::Only(declared) if !declared.contains(resource) => {
                Err(Cause::Undeclared { name: self.name, resource: resource.to_string() })
            }
            DeclaredWrites::Anything | DeclaredWrites::Only(_) => Ok(()),
        }
    }
}
