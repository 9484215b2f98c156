//! What the caches show of a namespace: the objects that the constraints of its quota count.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::views::{PersistentVolumeClaim, Pod, ResourceClaim, Service};

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

/// What is known of the objects of one evaluator.
#[derive(Debug)]
pub(super) enum Content {
    /// Pods, sorted by name.
    Pods(Vec<Arc<Pod>>),
    /// Services.
    Services(Vec<Arc<Service>>),
    /// Persistent volume claims.
    VolumeClaims(Vec<Arc<PersistentVolumeClaim>>),
    /// Resource claims, and the pods that they may be made for, sorted by name.
    ResourceClaims(Vec<Arc<ResourceClaim>>, Vec<Arc<Pod>>),
    /// How many objects of another kind there are.
    Objects(usize),
    /// The kind has just been found and is being listed; it is worth so long a wait.
    Listing(Duration),
    /// The objects are not known, and why.
    Unavailable(&'static str),
}
