//! The options of a deletion.

use kcm_api::{ResourceVersion, Uid};
use kcm_client::{DeleteOptions, DeletionPropagation};

/// Options of a deletion: the propagation to dependents, and preconditions besides the uid.
///
/// The uid of the object is always a precondition.
///
/// ```
/// use kcm_framework::Delete;
///
/// let with_its_pods = Delete::background();
/// let at_once = Delete::default().grace_period(0);
/// # let _ = (with_its_pods, at_once);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Delete {
    propagation: Option<DeletionPropagation>,
    grace_period_seconds: Option<i64>,
    resource_version: Option<ResourceVersion>,
}

impl Delete {
    const fn propagating(propagation: DeletionPropagation) -> Self {
        Self { propagation: Some(propagation), grace_period_seconds: None, resource_version: None }
    }

    /// Deletes the dependents first.
    pub const fn foreground() -> Self {
        Self::propagating(DeletionPropagation::Foreground)
    }

    /// Deletes the dependents afterwards.
    pub const fn background() -> Self {
        Self::propagating(DeletionPropagation::Background)
    }

    /// Keeps the dependents, without their owner reference.
    pub const fn orphan() -> Self {
        Self::propagating(DeletionPropagation::Orphan)
    }

    /// Deletes the object only if it has this resource version.
    pub fn at_version(self, version: &ResourceVersion) -> Self {
        Self { resource_version: Some(version.clone()), ..self }
    }

    /// Sets the grace period in seconds; 0 deletes the object at once. Without it, the kind decides.
    pub const fn grace_period(mut self, seconds: i64) -> Self {
        self.grace_period_seconds = Some(seconds);
        self
    }

    pub(super) fn options(&self, uid: Option<&Uid>) -> DeleteOptions {
        DeleteOptions {
            uid: uid.cloned(),
            resource_version: self.resource_version.clone(),
            grace_period_seconds: self.grace_period_seconds,
            propagation: self.propagation,
        }
    }
}
