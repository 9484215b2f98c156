//! What is known of a cache without knowing what it holds.

use futures::future::BoxFuture;
use kcm_api::{Meta, ObjectKey, Resource, ResourceVersion, Uid};

use crate::list_options::ListOptions;
use crate::status::InformerStatus;

/// An informer of any view: what reading one's own writes, health and debugging need.
pub trait Cache: Send + Sync {
    /// What is listed and watched.
    fn resource(&self) -> &Resource;

    /// Which objects of that.
    fn list_options(&self) -> &ListOptions;

    /// Whether the cache has once held everything.
    fn has_synced(&self) -> bool;

    /// How the informer is doing.
    fn status(&self) -> InformerStatus;

    /// The version up to which the cache has seen everything; unset until the first list is complete.
    fn last_sync_resource_version(&self) -> ResourceVersion;

    /// Which object, in which version, the cache holds under a key.
    fn object_state(&self, key: &ObjectKey) -> Option<ObjectState>;

    /// Whether the cache holds an object with that metadata when there is one.
    fn covers(&self, meta: &Meta) -> bool;

    /// Calls `hook` after each step, on the informer's task, once subscribers have been told and
    /// [`observed`](Self::observed) has moved.
    ///
    /// A hook that panics is counted and logged. Hooks stay for the life of the cache.
    fn on_progress(&self, hook: ProgressHook);

    /// Resolves when the cache has synced; never, if the informer is stopped before.
    fn wait_synced(&self) -> BoxFuture<'static, ()>;
}

/// Hears of each step that a cache has taken.
pub type ProgressHook = Box<dyn Fn(&Progress<'_>) + Send + Sync>;

/// Which object it is, in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectState {
    /// Identity over the object's whole life.
    pub uid: Uid,
    /// Version of the state that the cache holds.
    pub resource_version: ResourceVersion,
    /// Whether the object is being deleted.
    pub terminating: bool,
}

impl From<&Meta> for ObjectState {
    fn from(meta: &Meta) -> Self {
        Self {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            terminating: meta.is_terminating(),
        }
    }
}

/// A step that a cache has taken.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The version up to which the cache has seen everything.
    pub resource_version: &'a ResourceVersion,
    /// An object that was removed, or that is seen terminating for the first time.
    pub ended: Option<&'a Uid>,
}
