//! Reads from the API server: the resources that a Namespace may hold, and their objects.
//!
//! Only the key comes from a cache. A Namespace is empty only if the API server says so at the end.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::Session;
use kcm_framework::api::{Condition, Documented, InternedStr, Resource, Uid, view};
use kcm_framework::client::{ApiError, ListQuery, ResponseExt as _};
use kcm_framework::discovery::ServedResource;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Pods, which are deleted before all other objects.
pub(super) const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

/// Number of objects in a page of a list.
const PAGE: u32 = 500;

/// The finalizers that a deletion in the background removes from a terminating object.
const COLLECTOR_FINALIZERS: [&str; 2] = ["orphan", "foregroundDeletion"];

view! {
    /// The fields of a Namespace that its deletion reads.
    pub(super) struct NamespaceView {
        resource: Resource::cluster_scoped("", "v1", "namespaces", "Namespace");

        "spec" {
            /// `spec.finalizers`, which keep the Namespace until it is empty.
            pub finalizers: Vec<InternedStr> = "finalizers";
        }
        "status" {
            /// `status.conditions`.
            pub conditions: Vec<Condition> = "conditions";
        }
    }
}

/// A Namespace with its document, which is updated as a whole.
pub(super) type LiveNamespace = Documented<NamespaceView>;

/// The resources whose objects are deleted with their Namespace, Pods first and the others by name. `served` has all
/// versions of a resource, the preferred one first.
///
/// Versions whose discovery fails are left out, because the server behind them does not respond. If another version of the
/// group serves the resource, it is deleted in that version.
pub(super) fn deletable<'a>(
    served: impl Iterator<Item = &'a ServedResource>,
    broken: &BTreeMap<String, String>,
) -> Vec<ServedResource> {
    let is_known = |resource: &Resource| !broken.contains_key(&format!("{}/{}", resource.group, resource.version));
    let mut seen = BTreeSet::new();
    let known = served
        .filter(|served| is_known(&served.resource))
        .filter(|served| seen.insert((&served.resource.group, &served.resource.plural)));
    let deletable = known.filter(|served| served.resource.namespaced && served.supports(&["delete"]));
    let mut deletable: Vec<ServedResource> = deletable.cloned().collect();
    deletable.sort_by(|a, b| (a.resource != PODS, &a.resource).cmp(&(b.resource != PODS, &b.resource)));
    deletable
}

/// The part of a list that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The first page, which shows if there are any objects.
    FirstPage,
    /// All pages.
    All,
}

/// The objects of one resource in a Namespace.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) items: Vec<Item>,
    /// Whether there are more objects than `items`.
    pub(super) is_partial: bool,
}

/// An object in a list.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub(super) metadata: ItemMeta,
}

/// The fields of an object by which it is deleted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedItem {
    metadata: NamedMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamedMeta {
    name: String,
    uid: Uid,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ItemMeta {
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
    pub(super) finalizers: Option<Vec<InternedStr>>,
}

impl Item {
    /// Reads an object. If other metadata is invalid, name and uid count; the name is empty if it is invalid too.
    pub(super) fn read(json: &RawValue) -> Self {
        serde_json::from_str(json.get()).unwrap_or_else(|_| {
            let NamedItem { metadata: NamedMeta { name, uid } } = serde_json::from_str(json.get()).unwrap_or_default();
            Self { metadata: ItemMeta { name, uid, ..ItemMeta::default() } }
        })
    }

    fn finalizers(&self) -> &[InternedStr] {
        self.metadata.finalizers.as_deref().unwrap_or_default()
    }

    /// Returns `true` if a deletion in the background changes the object.
    ///
    /// # Upstream
    /// `rest.BeforeDelete`: an API server deletes in two steps, and the next deletion finishes one that stopped after the
    /// first step. A grace period that has not passed is not shortened.
    fn is_to_be_deleted(&self) -> bool {
        let finalizers = self.finalizers();
        let is_half_deleted = || finalizers.is_empty() && self.metadata.deletion_grace_period_seconds.unwrap_or(0) == 0;
        self.metadata.deletion_timestamp.is_none()
            || is_half_deleted()
            || finalizers.iter().any(|finalizer| COLLECTOR_FINALIZERS.contains(&&**finalizer))
    }
}

impl Listing {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.is_partial
    }

    /// Whether a deletion in the background changes any object.
    pub(super) fn is_to_be_deleted(&self) -> bool {
        self.is_partial || self.items.iter().any(Item::is_to_be_deleted)
    }

    /// Number of objects by finalizer.
    pub(super) fn by_finalizer(&self) -> BTreeMap<InternedStr, usize> {
        let mut counts = BTreeMap::new();
        for finalizer in self.items.iter().flat_map(Item::finalizers) {
            *counts.entry(finalizer.clone()).or_default() += 1;
        }
        counts
    }
}

/// A Pod with the fields from which its end is estimated.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodItem {
    pub(super) metadata: ItemMeta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) termination_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
}

/// Lists the metadata of the objects of a resource in a Namespace; `None` if the resource cannot be listed.
pub(super) async fn list(
    session: &Session,
    resource: &Resource,
    namespace: &str,
    extent: Extent,
) -> Result<Option<Listing>, ApiError> {
    let options = ListQuery { metadata_only: true, ..ListQuery::default() };
    let mut listing = Listing::default();
    let read = pages(session, resource, namespace, options, extent, |item| listing.items.push(Item::read(item))).await;
    Ok(read.ignore(is_not_supported)?.map(|is_partial| Listing { is_partial, ..listing }))
}

/// Lists the Pods of a Namespace, with their grace periods.
pub(super) async fn list_pods(session: &Session, namespace: &str) -> Result<Vec<PodItem>, ApiError> {
    let mut pods = Vec::new();
    let read = |item: &RawValue| pods.push(serde_json::from_str(item.get()).unwrap_or_default());
    pages(session, &PODS, namespace, ListQuery::default(), Extent::All, read).await?;
    Ok(pods)
}

/// Reads the pages of a list; returns true if there are more.
async fn pages(
    session: &Session,
    resource: &Resource,
    namespace: &str,
    mut options: ListQuery,
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

/// Returns true if the API server does not know the resource or the verb, although discovery has it.
pub(super) fn is_not_supported(error: &ApiError) -> bool {
    error.is_not_found() || error.status().is_some_and(|status| status.code == 405)
}
