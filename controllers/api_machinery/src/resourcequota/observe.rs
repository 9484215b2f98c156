//! The objects of a namespace, in the caches, that the constraints of its quota count.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, ResourceClaim, Service};

use super::evaluator::Evaluator;
use super::evaluator::resource_claims::DeviceClasses;

/// The objects of a namespace that a quota counts.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The objects of each evaluator that any constraint of the quota has.
    pub(super) content: Vec<(Evaluator, Content)>,
    /// The device classes of the cluster.
    pub(super) classes: DeviceClasses,
}

/// The objects of one evaluator.
#[derive(Debug)]
pub(super) enum Content {
    /// Sorted by name.
    Pods(Vec<Arc<Pod>>),
    Services(Vec<Arc<Service>>),
    VolumeClaims(Vec<Arc<PersistentVolumeClaim>>),
    /// `ResourceClaims`, and the Pods for which they may be created, sorted by name.
    ResourceClaims(Vec<Arc<ResourceClaim>>, Vec<Arc<Pod>>),
    /// Number of objects of another kind.
    Objects(usize),
    /// The kind has just been found and is being listed; the quota waits this long for it.
    Listing(Duration),
    /// The objects are not known, with the reason.
    Unavailable(&'static str),
}
