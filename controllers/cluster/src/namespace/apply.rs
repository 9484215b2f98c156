//! The requests that empty a namespace, and those that change the namespace itself.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use jiff::Timestamp;
use kcm_api::{Condition, DecodeError, EditError, KnownView as _, ObjectKey, Resource, View as _};
use kcm_framework::client::{ApiError, DeleteOptions, DeletionPropagation, Subresource};
use kcm_framework::discovery::ServedResource;
use kcm_framework::{Class, ReconcileError, Session};
use kcm_informers::ListOptions;

use super::content::{ResourceResult, grace_of};
use super::observe::{self, Extent, Item, Listing, LiveNamespace, NamespaceView, PODS};

/// How many resources of a namespace, and objects of a resource, are deleted at once.
const CONCURRENT_REQUESTS: usize = 4;

/// How often a namespace is updated that others change at the same time.
const UPDATES: usize = 5;

/// The finalizer that this controller removes.
const FINALIZER: &str = "kubernetes";

/// Deletes the objects of a namespace.
pub(super) struct ContentDeleter<'a> {
    pub(super) session: &'a Session,
    pub(super) namespace: &'a str,
    /// When the namespace was deleted.
    pub(super) deleted_at: Timestamp,
}

impl ContentDeleter<'_> {
    /// Deletes the objects of these resources, pods before all others.
    ///
    /// The others are left alone while a pod may remain.
    pub(super) async fn delete_all(&self, resources: &[ServedResource]) -> Vec<ResourceResult> {
        let (pods, others): (Vec<_>, Vec<_>) = resources.iter().partition(|served| served.resource == PODS);
        let mut results = Vec::new();
        for pods in pods {
            results.push(self.delete_resource(pods).await);
        }
        if results.iter().any(ResourceResult::may_remain) {
            tracing::debug!("Pods remain; the other resources wait for them");
            return results;
        }
        let calls: Vec<_> = others.into_iter().map(|served| self.delete_resource(served)).collect();
        let mut calls = stream::iter(calls).buffer_unordered(CONCURRENT_REQUESTS);
        while let Some(result) = calls.next().await {
            results.push(result);
        }
        results
    }

    /// Deletes the objects of a resource, and returns what is left of them.
    async fn delete_resource(&self, served: &ServedResource) -> ResourceResult {
        let resource = &served.resource;
        self.try_delete_resource(served).await.unwrap_or_else(|error| ResourceResult::failed(resource.clone(), error))
    }

    async fn try_delete_resource(&self, served: &ServedResource) -> Result<ResourceResult, ApiError> {
        let resource = &served.resource;
        let gone = || ResourceResult::gone(resource.clone());
        let grace = if *resource == PODS { self.grace().await? } else { Duration::ZERO };
        let lists = served.supports(&["list"]);
        let before = if lists { self.list(resource, Extent::FirstPage).await? } else { None };
        if before.as_ref().is_some_and(Listing::is_empty) {
            return Ok(gone());
        }
        if before.as_ref().is_none_or(Listing::is_to_be_deleted) {
            let is_supported = served.supports(&["deletecollection"]);
            if !(is_supported && self.delete_collection(resource).await?) {
                self.delete_each(resource, before).await?;
            }
        }
        let after = if lists { self.list(resource, Extent::All).await? } else { None };
        Ok(after.map_or_else(gone, |after| ResourceResult::after(resource.clone(), &after, grace)))
    }

    async fn grace(&self) -> Result<Duration, ApiError> {
        let pods = observe::list_pods(self.session, self.namespace).await?;
        Ok(grace_of(&pods, self.deleted_at, self.session.now()))
    }

    async fn list(&self, resource: &Resource, extent: Extent) -> Result<Option<Listing>, ApiError> {
        observe::list(self.session, resource, self.namespace, extent).await
    }

    /// Deletes the collection; returns whether the API server supports that.
    async fn delete_collection(&self, resource: &Resource) -> Result<bool, ApiError> {
        match self.session.delete_collection(resource, &ListOptions::namespace(self.namespace), &in_background()).await
        {
            Ok(()) => Ok(true),
            Err(error) if observe::is_not_supported(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes each object; `before` has all of them, or the first ones.
    async fn delete_each(&self, resource: &Resource, before: Option<Listing>) -> Result<(), ApiError> {
        let listing = match before {
            Some(listing) if !listing.is_partial => Some(listing),
            Some(_) => self.list(resource, Extent::All).await?,
            None => None,
        };
        let items = listing.map(|listing| listing.items).unwrap_or_default();
        let calls: Vec<_> = items.iter().map(|item| self.delete_item(resource, item)).collect();
        let mut calls = stream::iter(calls).buffer_unordered(CONCURRENT_REQUESTS);
        let mut first_error = None;
        while let Some(deleted) = calls.next().await {
            if let Err(error) = deleted {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn delete_item(&self, resource: &Resource, item: &Item) -> Result<(), ApiError> {
        let (key, uid) = (ObjectKey::namespaced(self.namespace, &*item.metadata.name), &item.metadata.uid);
        let options = DeleteOptions { uid: Some(uid.clone()), ..in_background() };
        match self.session.raw_delete(resource, &key, uid, &options).await {
            Ok(_) => Ok(()),
            // Recreated under the same name, which the next list shows; or not deletable.
            Err(error) if error.is_conflict() || observe::is_not_supported(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The options of every deletion: the API server must not add finalizers for the garbage collector.
fn in_background() -> DeleteOptions {
    DeleteOptions { propagation: Some(DeletionPropagation::Background), ..DeleteOptions::default() }
}

/// Why the namespace itself could not be updated.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpdateError {
    /// A request failed.
    #[error("cannot update the namespace")]
    Request(#[source] ApiError),
    /// The namespace is not what the API server should send.
    #[error("cannot edit the namespace")]
    Edit(#[source] EditError),
    /// The namespace with its new version cannot be read.
    #[error("cannot read the namespace")]
    Decode(#[source] DecodeError),
    /// The namespace was recreated under the same name.
    #[error("the namespace was recreated under the same name")]
    Replaced,
}

impl From<UpdateError> for ReconcileError {
    fn from(error: UpdateError) -> Self {
        let class = match &error {
            UpdateError::Request(error) => Class::from(error),
            UpdateError::Edit(_) | UpdateError::Decode(_) => Class::Terminal,
            UpdateError::Replaced => Class::Conflict,
        };
        Self::new(class, error)
    }
}

/// Updates a namespace.
pub(super) struct NamespaceWriter<'a> {
    pub(super) session: &'a Session,
    pub(super) key: &'a ObjectKey,
}

impl NamespaceWriter<'_> {
    /// Removes the finalizer of this controller, again from the live namespace where another has changed it.
    pub(super) async fn finalize(&self, mut namespace: LiveNamespace) -> Result<(), UpdateError> {
        let uid = namespace.metadata.uid.clone();
        for updates_left in (0..UPDATES).rev() {
            let mut rest: Vec<&str> = namespace.view.finalizers.iter().map(|name| &**name).collect();
            rest.retain(|name| *name != FINALIZER);
            rest.sort_unstable();
            rest.dedup();
            namespace.document.set(&["spec", "finalizers"], &rest).map_err(UpdateError::Edit)?;
            match self.put(Subresource::FINALIZE, &namespace).await {
                Err(UpdateError::Request(error)) if error.is_not_found() => return Ok(()),
                Err(UpdateError::Request(error)) if error.is_conflict() && updates_left > 0 => {}
                result => return result.map(drop),
            }
            let live = observe::read(self.session, self.key).await.map_err(UpdateError::Request)?;
            match live {
                Some(live) if live.metadata.uid == uid => namespace = live,
                Some(_) => return Err(UpdateError::Replaced),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Updates conditions, and returns the namespace with its new version.
    ///
    /// A failure is logged and no more: it must not keep the namespace. The next round writes them again.
    pub(super) async fn report(&self, namespace: LiveNamespace, conditions: &[Condition]) -> LiveNamespace {
        if conditions.is_empty() {
            return namespace;
        }
        let mut edited = namespace.clone();
        let result = match conditions.iter().try_for_each(|condition| edited.document.put_condition(condition)) {
            Ok(()) => self.put(Subresource::Status, &edited).await,
            Err(error) => Err(UpdateError::Edit(error)),
        };
        result.unwrap_or_else(|error| {
            let cause = std::error::Error::source(&error);
            tracing::warn!(%error, cause, "Cannot update the conditions of the namespace");
            namespace
        })
    }

    /// Puts the document, and returns it with its new version.
    async fn put(&self, subresource: Subresource, namespace: &LiveNamespace) -> Result<LiveNamespace, UpdateError> {
        let resource = const { &NamespaceView::RESOURCE };
        let mut document = namespace.document.clone();
        let written = self.session.put_document(resource, self.key, subresource, &document).await;
        let version = written.map_err(UpdateError::Request)?.resource_version;
        document.set(&["metadata", "resourceVersion"], &version).map_err(UpdateError::Edit)?;
        LiveNamespace::decode(document.as_str()).map_err(UpdateError::Decode)
    }
}
