//! Live lists, which show the outcome of writes.

use std::collections::BTreeSet;

use kcm_api::{PartialObjectMeta, Resource, ResourceVersion, View as _};
use kcm_client::{ApiClient, ApiError, Cause, ListQuery, Page};
use serde_json::value::RawValue;

/// Largest number of objects on a page of a list.
const PAGE: u32 = 500;

/// The objects of some names in one namespace, as a live list shows them.
#[derive(Debug)]
pub(crate) struct LiveList {
    /// The resource version of the list.
    pub(crate) version: ResourceVersion,
    /// The objects that exist, with their metadata as served.
    pub(crate) objects: Vec<(PartialObjectMeta, Box<RawValue>)>,
}

/// Lists the metadata of the objects `names` of one namespace.
///
/// One object is listed by its name. Several are found in one list of the namespace, in pages, which ends with the page
/// that has the last of them. The empty name stands for an unknown object of the namespace: only the version of the list
/// matters.
///
/// A list and not a get: the manager may list everything, but not every role may get.
pub(crate) async fn list_objects(
    live: &ApiClient,
    resource: &Resource,
    namespace: Option<&str>,
    names: &BTreeSet<&str>,
) -> Result<LiveList, ApiError> {
    let mut sought: BTreeSet<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    let single = if let [name] = *sought.iter().copied().collect::<Vec<_>>() { Some(name) } else { None };
    let mut options = ListQuery {
        field_selector: single.map(|name| format!("metadata.name={name}")),
        limit: single.is_none().then_some(if sought.is_empty() { 1 } else { PAGE }),
        metadata_only: true,
        ..ListQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = page(live, resource, namespace, &options).await?;
        for item in page.items {
            let object = PartialObjectMeta::decode(item.get()).map_err(|error| unreadable(resource, error.into()))?;
            if sought.remove(object.metadata.key.name()) {
                found.push((object, item));
            }
        }
        match page.continue_token {
            Some(token) if !sought.is_empty() => options.continue_token = Some(token),
            Some(_) | None => return Ok(LiveList { version: page.resource_version, objects: found }),
        }
    }
}

async fn page(
    live: &ApiClient,
    resource: &Resource,
    namespace: Option<&str>,
    options: &ListQuery,
) -> Result<Page, ApiError> {
    let list = || live.list(resource, namespace, options);
    let page = match list().await {
        // The next connection may work, and the next check is half a minute away.
        Err(error) if error.is_connection_failure() => list().await?,
        answer => answer?,
    };
    // An unreadable response must not count as missing objects.
    if page.resource_version.is_unset() {
        let error = serde::de::Error::custom("the answer is no list: it has no resourceVersion");
        return Err(unreadable(resource, error));
    }
    Ok(page)
}

fn unreadable(resource: &Resource, error: serde_json::Error) -> ApiError {
    ApiError::new(format!("read a list of {resource}"), Cause::Decode(error))
}
