//! The responses of the API server.

use bytes::Bytes;
use kcm_api::{InternedStr, ObjectKey, ResourceVersion, Uid};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::head::Head;

/// The object in the response of a write.
#[derive(Debug, Clone)]
pub struct Written {
    /// Namespace and name, which the server may have generated.
    pub key: ObjectKey,
    /// The uid of the object; unset if the response is no object.
    pub uid: Uid,
    /// The resource version of the object; unset if the response is no object.
    pub resource_version: ResourceVersion,
    /// The body of the response: the object, or only its metadata if the framework's `Session` wrote it.
    pub body: Bytes,
}

impl Written {
    /// Decodes the metadata of a response. Missing fields are taken from the request.
    pub(crate) fn read(body: Bytes, namespace: Option<&str>, name: Option<&str>) -> Result<Self, serde_json::Error> {
        let metadata = Head::of(&body)?;
        let name = if metadata.name.is_empty() { name.unwrap_or_default().into() } else { metadata.name };
        let key = match metadata.namespace.or_else(|| namespace.map(InternedStr::from)) {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster_scoped(name),
        };
        Ok(Self { key, uid: metadata.uid, resource_version: metadata.resource_version, body })
    }
}

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The server accepted the request: the object is deleted or terminating.
    Accepted,
    /// The object did not exist (404).
    Gone,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The resource version of the list.
    pub resource_version: ResourceVersion,
    /// The `continue` token of the next page; absent on the last page.
    pub continue_token: Option<String>,
    /// The objects, undecoded. Their `kind` and `apiVersion` follow from the list.
    pub items: Vec<Box<RawValue>>,
    /// The number of objects on later pages, if the server tells it.
    pub remaining_items: Option<u64>,
}

impl Page {
    pub(crate) fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListHead,
            items: Option<Vec<Box<RawValue>>>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct ListHead {
            resource_version: ResourceVersion,
            r#continue: String,
            remaining_item_count: Option<i64>,
        }
        let List { metadata, items } = serde_json::from_slice(body)?;
        Ok(Self {
            resource_version: metadata.resource_version,
            continue_token: (!metadata.r#continue.is_empty()).then_some(metadata.r#continue),
            items: items.unwrap_or_default(),
            remaining_items: metadata.remaining_item_count.and_then(|count| count.try_into().ok()),
        })
    }
}
