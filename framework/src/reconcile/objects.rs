//! Reconcilers that are handed the object of the key.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use kcm_api::{ObjectKey, View};
use kcm_informers::{Informer, MultiNamespaceInformer};

use super::{Reconcile, ReconcileError, Session};

/// A reconciler whose keys name the objects of one cache: it is handed the cached object.
///
/// The guarantees of [`Reconcile`] hold here as well.
#[async_trait]
pub trait ReconcileObject<V: View>: Send + Sync + 'static {
    /// Reconciles one object: reads the caches, decides, and writes through `session`.
    ///
    /// # Errors
    /// See [`Reconcile::reconcile`].
    async fn reconcile(&self, object: &Arc<V>, session: &Session) -> Result<(), ReconcileError>;

    /// Called for a key that names no object, such as after a deletion: forget what is kept for it, or delete what it
    /// leaves behind. Does nothing by default.
    ///
    /// # Errors
    /// See [`Reconcile::reconcile`].
    async fn deleted(&self, _key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        Ok(())
    }

    /// Prepares for the first key; see [`Reconcile::prepare`].
    ///
    /// # Errors
    /// See [`Reconcile::prepare`].
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        Ok(())
    }
}

/// A cache that holds the objects of a [`ReconcileObject`]: an informer, or several of one kind.
pub trait ObjectSource<V>: Send + Sync + 'static {
    /// Returns the cached object of the key.
    fn object(&self, key: &ObjectKey) -> Option<Arc<V>>;
}

impl<V: View> ObjectSource<V> for Informer<V> {
    fn object(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.get(key)
    }
}

impl<V: View> ObjectSource<V> for MultiNamespaceInformer<V> {
    fn object(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.get(key)
    }
}

/// A [`ReconcileObject`] with the cache of its objects.
pub(crate) struct OfObjects<V, S, R> {
    pub(crate) objects: S,
    pub(crate) reconciler: R,
    pub(crate) view: PhantomData<fn() -> V>,
}

#[async_trait]
impl<V: View, S: ObjectSource<V>, R: ReconcileObject<V>> Reconcile for OfObjects<V, S, R> {
    async fn prepare(&self, session: &Session) -> Result<(), ReconcileError> {
        self.reconciler.prepare(session).await
    }

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        match self.objects.object(key) {
            Some(object) => self.reconciler.reconcile(&object, session).await,
            None => self.reconciler.deleted(key, session).await,
        }
    }
}
