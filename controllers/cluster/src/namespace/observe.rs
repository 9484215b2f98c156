//! What is read from the API server: the namespace itself, the resources that it may hold, and their objects.
//!
//! Nothing but the trigger comes from a cache. A namespace is empty only if the API server says so at the end.

use std::collections::BTreeMap;

use kcm_api::{Condition, Documented, InternedStr, ObjectKey, Resource, Uid, view};
use kcm_framework::Session;
use kcm_framework::client::{ApiError, ListOptions};
use kcm_framework::discovery::ServedResource;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Pods, which are deleted before everything else.
pub(super) const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

/// Objects per page of a list.
const PAGE: u32 = 500;

/// The finalizers that a deletion in the background removes from an object that is terminating already.
const COLLECTOR_FINALIZERS: [&str; 2] = ["orphan", "foregroundDeletion"];

view! {
    /// A namespace with what its deletion reads.
    pub(super) struct NamespaceView {
        resource: Resource::cluster_scoped("", "v1", "namespaces", "Namespace");

        "spec" {
            /// The finalizers that keep the namespace until it is empty; not those of its metadata.
            pub finalizers: Vec<InternedStr> = "finalizers";
        }
        "status" {
            /// `status.conditions`.
            pub conditions: Vec<Condition> = "conditions";
        }
    }
}

/// A namespace with its document, which is put back whole.
pub(super) type LiveNamespace = Documented<NamespaceView>;

/// Reads a namespace from the API server; absent if it does not exist.
pub(super) async fn read(session: &Session, key: &ObjectKey) -> Result<Option<LiveNamespace>, ApiError> {
    match session.api().get(const { &<NamespaceView as kcm_api::KnownView>::RESOURCE }, key).await {
        Ok(namespace) => Ok(Some(namespace)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The resources whose objects are deleted with their namespace, pods first and the others by name.
///
/// Those of a version whose discovery fails are left out: the
/// server behind it does not answer.
pub(super) fn deletable<'a>(
    preferred: impl Iterator<Item = &'a ServedResource>,
    broken: &BTreeMap<String, String>,
) -> Vec<ServedResource> {
    let is_known = |resource: &Resource| !broken.contains_key(&format!("{}/{}", resource.group, resource.version));
    let deletable = preferred
        .filter(|served| served.resource.namespaced && served.supports(&["delete"]) && is_known(&served.resource));
    let mut deletable: Vec<ServedResource> = deletable.cloned().collect();
    deletable.sort_by(|a, b| (a.resource != PODS, &a.resource).cmp(&(b.resource != PODS, &b.resource)));
    deletable
}

/// How much of a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The first page: whether there are any objects.
    FirstPage,
    /// All pages.
    All,
}

/// The objects of one resource in a namespace.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Each object.
    pub(super) items: Vec<Item>,
    /// Whether there are more objects than `items`.
    pub(super) is_partial: bool,
}

/// What is read of an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub(super) metadata: ItemMeta,
}

/// What is read of the metadata of an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ItemMeta {
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) finalizers: Option<Vec<InternedStr>>,
}

impl Item {
    /// Reads an object; one that cannot be read counts as an object without a name and finalizers.
    fn read(json: &RawValue) -> Self {
        serde_json::from_str(json.get()).unwrap_or_default()
    }

    fn finalizers(&self) -> &[InternedStr] {
        self.metadata.finalizers.as_deref().unwrap_or_default()
    }

    /// Whether a deletion in the background changes the object.
    fn is_to_be_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_none()
            || self.finalizers().iter().any(|finalizer| COLLECTOR_FINALIZERS.contains(&&**finalizer))
    }
}

impl Listing {
    /// Whether there is no object.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.is_partial
    }

    /// Whether a deletion in the background changes any object.
    pub(super) fn is_to_be_deleted(&self) -> bool {
        self.is_partial || self.items.iter().any(Item::is_to_be_deleted)
    }

    /// How many objects have each finalizer.
    pub(super) fn by_finalizer(&self) -> BTreeMap<InternedStr, usize> {
        let mut counts = BTreeMap::new();
        for finalizer in self.items.iter().flat_map(Item::finalizers) {
            *counts.entry(finalizer.clone()).or_default() += 1;
        }
        counts
    }
}

/// A pod, as far as its end is estimated.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodItem {
    pub(super) metadata: ItemMeta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

/// What is read of the `spec` of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) termination_grace_period_seconds: Option<i64>,
}

/// What is read of the `status` of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
}

/// Lists the metadata of the objects of a resource in a namespace; absent if the resource cannot be listed.
pub(super) async fn list(
    session: &Session,
    resource: &Resource,
    namespace: &str,
    extent: Extent,
) -> Result<Option<Listing>, ApiError> {
    let options = ListOptions { metadata_only: true, ..ListOptions::default() };
    let mut listing = Listing::default();
    match pages(session, resource, namespace, options, extent, |item| listing.items.push(Item::read(item))).await {
        Ok(is_partial) => Ok(Some(Listing { is_partial, ..listing })),
        Err(error) if is_not_supported(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lists the pods of a namespace, with their grace periods.
pub(super) async fn list_pods(session: &Session, namespace: &str) -> Result<Vec<PodItem>, ApiError> {
    let mut pods = Vec::new();
    let read = |item: &RawValue| pods.push(serde_json::from_str(item.get()).unwrap_or_default());
    pages(session, &PODS, namespace, ListOptions::default(), Extent::All, read).await?;
    Ok(pods)
}

/// Reads the pages of a list; returns whether there are more.
async fn pages(
    session: &Session,
    resource: &Resource,
    namespace: &str,
    mut options: ListOptions,
    extent: Extent,
    mut read: impl FnMut(&RawValue),
) -> Result<bool, ApiError> {
    options.limit = Some(PAGE);
    loop {
        let page = session.api().list(resource, Some(namespace), &options).await?;
        page.items.iter().for_each(|item| read(item));
        match (page.continue_token, extent) {
            (None, _) => return Ok(false),
            (Some(_), Extent::FirstPage) => return Ok(true),
            (token, Extent::All) => options.continue_token = token,
        }
    }
}

/// Whether the API server does not know the resource or the verb, although discovery has it.
pub(super) fn is_not_supported(error: &ApiError) -> bool {
    error.is_not_found() || error.status().is_some_and(|status| status.code == 405)
}
