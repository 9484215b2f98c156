//! The requests that delete the objects of a Namespace, and those that update the Namespace.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use jiff::Timestamp;
use kcm_framework::api::{Condition, KnownView as _, ObjectKey, Resource};
use kcm_framework::client::{ApiError, Cause, Payload, ResponseExt as _, Subresource, Written};
use kcm_framework::discovery::ServedResource;
use kcm_framework::informers::ListOptions;
use kcm_framework::{Delete, ReconcileError, Session};

use super::content::{ResourceResult, grace_of};
use super::observe::{self, Extent, Item, Listing, LiveNamespace, NamespaceView, PODS};

/// Number of resources of a Namespace, and of objects of a resource, that are deleted at the same time.
const CONCURRENT_REQUESTS: usize = 4;

/// Number of updates of a Namespace that other clients change at the same time.
const UPDATES: usize = 5;

/// How every object is deleted: the API server must not add finalizers for the garbage collector.
const IN_BACKGROUND: Delete = Delete::background();

const FINALIZER: &str = "kubernetes";

/// Deletes the objects of a Namespace.
pub(super) struct ContentDeleter<'a> {
    pub(super) session: &'a Session,
    pub(super) namespace: &'a str,
    /// Time of the deletion of the Namespace.
    pub(super) deleted_at: Timestamp,
}

impl ContentDeleter<'_> {
    /// Deletes the objects of these resources, Pods before all others.
    ///
    /// The others are kept while a Pod may remain.
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

    /// Deletes the objects of a resource, and returns the remaining ones.
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

    /// Deletes the collection; returns false if the API server does not support it.
    async fn delete_collection(&self, resource: &Resource) -> Result<bool, ApiError> {
        let of_namespace = ListOptions::namespace(self.namespace);
        let deleted = self.session.of(resource).delete_collection(&of_namespace, &IN_BACKGROUND).await;
        Ok(deleted.ignore(observe::is_not_supported)?.is_some())
    }

    /// Deletes each object; `before` has all objects, or the first ones.
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
        if item.metadata.name.is_empty() {
            let request = format!("delete {resource} in namespace {:?}", self.namespace);
            let cause =
                <serde_json::Error as serde::de::Error>::custom("an object of the list has no name that can be read");
            return Err(ApiError::new(request, Cause::Decode(cause)));
        }
        let key = ObjectKey::namespaced(self.namespace, &*item.metadata.name);
        let deleted = self.session.of(resource).delete(&key, &item.metadata.uid, &IN_BACKGROUND).await;
        // The next list shows an object that was recreated under the same name.
        deleted.ignore(|error| error.is_other_object() || observe::is_not_supported(error)).map(drop)
    }
}

/// Updates a Namespace.
pub(super) struct NamespaceWriter<'a> {
    pub(super) session: &'a Session,
}

impl NamespaceWriter<'_> {
    /// Removes the finalizer of this controller. After a conflict it removes the finalizer from the live Namespace.
    pub(super) async fn finalize(&self, mut namespace: LiveNamespace) -> Result<(), ReconcileError> {
        for updates_left in (0..UPDATES).rev() {
            let mut rest: Vec<&str> = namespace.view.finalizers.iter().map(|name| &**name).collect();
            rest.retain(|name| *name != FINALIZER);
            rest.sort_unstable();
            rest.dedup();
            namespace.document.set(&["spec", "finalizers"], &rest)?;
            match self.put_finalizers(&namespace).await.ignore_not_found() {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() && updates_left > 0 => {}
                Err(error) => return Err(error.into()),
            }
            let Some(live) = self.session.live_as(&namespace).await? else { return Ok(()) };
            namespace = live;
        }
        Ok(())
    }

    async fn put_finalizers(&self, namespace: &LiveNamespace) -> Result<Written, ApiError> {
        let payload = Payload::raw(namespace.document.as_str().to_owned());
        let namespaces = self.session.of(const { &NamespaceView::RESOURCE });
        namespaces.put(&namespace.metadata.key, Subresource::FINALIZE, payload).await
    }

    /// Updates conditions, and returns the Namespace whose document has the new version.
    ///
    /// A failure is only logged, because it must not keep the Namespace. The next round writes the conditions again.
    pub(super) async fn report(&self, namespace: LiveNamespace, conditions: &[Condition]) -> LiveNamespace {
        if conditions.is_empty() {
            return namespace;
        }
        self.try_report(namespace.clone(), conditions).await.unwrap_or_else(|error| {
            let cause = std::error::Error::source(&error);
            tracing::warn!(%error, cause, "Cannot update the conditions of the namespace");
            namespace
        })
    }

    async fn try_report(
        &self,
        mut namespace: LiveNamespace,
        conditions: &[Condition],
    ) -> Result<LiveNamespace, ReconcileError> {
        for condition in conditions {
            namespace.document.put_condition(condition)?;
        }
        let version = self.session.update_status(&namespace, &namespace.document).await?.resource_version;
        namespace.document.set(&["metadata", "resourceVersion"], &version)?;
        Ok(namespace)
    }
}
