//! A cache independent of its view.

use std::sync::Arc;

use futures::future::BoxFuture;
use kcm_api::{Meta, ObjectKey, Resource, ResourceVersion, Uid};

use crate::list_options::ListOptions;
use crate::moments::Moment;
use crate::progress_hooks::{HookRegistration, ProgressHook};
use crate::status::InformerStatus;
use crate::undecodable::UndecodableObject;

/// An informer of any view, for tracking of pending writes, health checks and debugging.
pub trait Cache: Send + Sync {
    /// The resource that is listed and watched.
    fn resource(&self) -> &Resource;

    /// Returns the list options of the informer.
    fn list_options(&self) -> &ListOptions;

    /// Returns `true` if the informer has synced: its cache has held all objects once, since the resource is served.
    fn has_synced(&self) -> bool;

    /// The status of the informer.
    fn status(&self) -> InformerStatus;

    /// The memory of the cached objects at least, in bytes: their views and JSON, without strings that several share. Reads
    /// every object.
    fn bytes(&self) -> usize;

    /// The resource version up to which the cache has applied all changes; unset until the first list is complete, and
    /// after the resource has disappeared.
    fn last_sync_resource_version(&self) -> ResourceVersion;

    /// The state of the object with that key, including objects that cannot be decoded.
    fn object_state(&self, key: &ObjectKey) -> Option<ObjectState>;

    /// The objects of the cache that certainly match `options`, in no order; see [`ListOptions::covers`].
    fn matching(&self, options: &ListOptions) -> Vec<(ObjectKey, ObjectState)>;

    /// Returns `true` if an object with that metadata matches the list options, and `None` if the metadata do not
    /// decide that.
    fn covers(&self, meta: &Meta) -> Option<bool>;

    /// The object with that key, if it cannot be decoded.
    fn undecodable(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>>;

    /// The objects that cannot be decoded, sorted by key; objects whose name cannot be read either are only counted, in
    /// the [status](Self::status).
    ///
    /// They are not in the cache. A controller that takes an object for missing looks here before it creates another.
    fn undecodable_objects(&self) -> Vec<Arc<UndecodableObject>>;

    /// The first object, by key, that cannot be decoded and whose controller has that uid.
    fn undecodable_controlled_by(&self, owner: &Uid) -> Option<Arc<UndecodableObject>>;

    /// Has the revision of the storage compared with the caches, because it may have gone back: for example, the version
    /// of a new object is not above the [last sync resource version](Self::last_sync_resource_version).
    ///
    /// There is one request in ten seconds at most, and no cache is listed again if the storage has not gone back.
    fn suspect_rollback(&self);

    /// Calls `hook` after each step, on the task of the informer, after event handlers and after the
    /// [last sync resource version](Self::last_sync_resource_version) has moved.
    ///
    /// A hook that panics is counted and logged. It is removed when the registration is dropped.
    fn on_progress(&self, hook: ProgressHook) -> HookRegistration;

    /// Resolves when the cache has synced; never, if the informer is stopped before.
    fn wait_synced(&self) -> BoxFuture<'static, ()>;

    /// Returns `true` if the cache certainly holds everything that was written before `since`.
    fn is_current(&self, since: Moment) -> bool;

    /// Resolves when the cache [is current](Self::is_current). A list after `since` proves that, and
    /// [`Factory::prove_current`](crate::Factory::prove_current).
    fn wait_current(&self, since: Moment) -> BoxFuture<'static, ()>;

    /// The version that the cache of another manager must reach to have seen what this cache has seen; unset before the
    /// first list.
    fn handed_over(&self) -> ResourceVersion;
}

/// The uid, the resource version and the deletion state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectState {
    /// The uid of the object.
    pub uid: Uid,
    /// The resource version of the object.
    pub resource_version: ResourceVersion,
    /// Whether the object is being deleted.
    pub terminating: bool,
}

impl From<&UndecodableObject> for ObjectState {
    fn from(object: &UndecodableObject) -> Self {
        Self {
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
            terminating: object.is_terminating(),
        }
    }
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
