//! Get and list. Pure.
//!
//! # Upstream
//! `apiserver/pkg/storage`: how versions, limits and continue tokens go together

use std::sync::Arc;

use kcm_api::ObjectKey;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;
use crate::request::{Form, ListOptions, Target, VersionMatch};
use crate::selection::{Selection, namespace_of};
use crate::server::Server;
use crate::status::Status;

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Value>>,
    continue_token: Option<String>,
    remaining: Option<usize>,
}

/// Where a paged list goes on.
struct Token {
    /// The version of all pages; `None` goes on with whatever is there now.
    version: Option<u64>,
    after: ObjectKey,
}

impl Server {
    pub(crate) fn get(&self, target: &Target) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&target.resource)?;
        let name = target.name.as_deref().unwrap_or_default();
        let key = object::key_of(&kind.resource, target.namespace.as_deref(), name);
        self.store.get(&kind.resource, &key).cloned().ok_or_else(|| Status::not_found(&kind.resource, name))
    }

    /// Lists a collection; `stale` is the version that lists which allow an old state are served from.
    pub(crate) fn list(&self, target: &Target, options: &ListOptions, stale: Option<u64>) -> Result<Listed, Status> {
        let kind = self.kind(&target.resource)?;
        let resource = &kind.resource;
        let namespace = namespace_of(resource, target.namespace.as_deref());
        let selection = Selection::parse(kind, namespace, options.labels.as_deref(), options.fields.as_deref())?;
        let token = options.continue_token.as_deref().map(Token::parse).transpose()?;
        if token.is_some() && options.version.is_some_and(|version| version > 0) {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let version = match &token {
            Some(token) => token.version.unwrap_or(self.store.version()),
            None => self.version_to_list(options, stale)?,
        };
        let all: Vec<(ObjectKey, Arc<Value>)> = if version == self.store.version() {
            self.store.list(resource, namespace).map(|(key, object)| (key.clone(), object.clone())).collect()
        } else {
            self.store.list_at(resource, namespace, version).map_err(|_| match &token {
                None => Status::expired(TOO_OLD),
                Some(token) => Status {
                    continue_token: Some(Token { version: None, after: token.after.clone() }.to_string()),
                    ..Status::expired(CONTINUE_TOO_OLD)
                },
            })?
        };
        let rest = all.into_iter().filter(|(key, object)| {
            token.as_ref().is_none_or(|token| *key > token.after) && selection.matches(key, object)
        });
        Ok(page(version, rest.collect(), options.limit, !selection.has_selectors()))
    }

    fn version_to_list(&self, options: &ListOptions, stale: Option<u64>) -> Result<u64, Status> {
        let current = self.store.version();
        let asked = options.version.unwrap_or(0);
        if asked > current {
            return Err(Status::version_too_large(asked, current));
        }
        let exact = match options.version_match {
            Some(VersionMatch::Exact) => true,
            Some(VersionMatch::NotOlderThan) => false,
            None => asked > 0 && options.limit.is_some(),
        };
        if exact {
            return Ok(asked);
        }
        Ok(self.stale_version(options, stale))
    }

    /// The version of a list or of initial events that need not be the newest.
    pub(crate) fn stale_version(&self, options: &ListOptions, stale: Option<u64>) -> u64 {
        let current = self.store.version();
        match (options.version, stale) {
            (Some(asked), Some(stale)) if stale >= asked => stale,
            _ => current,
        }
    }
}

fn page(version: u64, matching: Vec<(ObjectKey, Arc<Value>)>, limit: Option<usize>, count: bool) -> Listed {
    let total = matching.len();
    let kept = limit.map_or(total, |limit| limit.min(total));
    let continue_token =
        (kept < total).then(|| Token { version: Some(version), after: matching[kept - 1].0.clone() }.to_string());
    let remaining = (kept < total && count).then(|| total - kept);
    let items = matching.into_iter().take(kept).map(|(_, object)| object).collect();
    Listed { version, items, continue_token, remaining }
}

impl Token {
    fn parse(text: &str) -> Result<Self, Status> {
        let parts: Vec<&str> = text.splitn(3, ':').collect();
        let invalid = || Status::bad_request("invalid continue token: continue key is not valid");
        let ["v1", version, key] = parts.as_slice() else { return Err(invalid()) };
        let version = if *version == "now" { None } else { Some(version.parse().map_err(|_| invalid())?) };
        let after = match key.split_once('/') {
            Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster_scoped(*key),
        };
        Ok(Self { version, after })
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.version {
            Some(version) => write!(f, "v1:{version}:{}", self.after),
            None => write!(f, "v1:now:{}", self.after),
        }
    }
}

impl Listed {
    pub(crate) fn into_json(self, kind: &Kind, metadata_only: bool) -> Value {
        let form = if metadata_only { Form::MetadataOnly } else { Form::Whole };
        serde_json::to_value(ListView { listed: &self, kind, form }).expect("a list of JSON is JSON")
    }

    pub(crate) fn to_bytes(&self, kind: &Kind, form: Form) -> Vec<u8> {
        serde_json::to_vec(&ListView { listed: self, kind, form }).expect("a list of JSON is JSON")
    }
}

struct ListView<'a> {
    listed: &'a Listed,
    kind: &'a Kind,
    form: Form,
}

impl Serialize for ListView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut metadata = serde_json::json!({ "resourceVersion": self.listed.version.to_string() });
        if let Some(token) = &self.listed.continue_token {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = self.listed.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        let mut map = serializer.serialize_map(Some(4))?;
        match self.form {
            Form::Whole => {
                map.serialize_entry("kind", &format!("{}List", self.kind.resource.kind))?;
                map.serialize_entry("apiVersion", &self.kind.resource.api_version())?;
            }
            Form::MetadataOnly => {
                map.serialize_entry("kind", "PartialObjectMetadataList")?;
                map.serialize_entry("apiVersion", "meta.k8s.io/v1")?;
            }
        }
        map.serialize_entry("metadata", &metadata)?;
        let custom = self.kind.is_custom();
        let items: Vec<ItemView<'_>> =
            self.listed.items.iter().map(|object| ItemView { object, custom, form: self.form }).collect();
        map.serialize_entry("items", &items)?;
        map.end()
    }
}

struct ItemView<'a> {
    object: &'a Value,
    custom: bool,
    form: Form,
}

impl Serialize for ItemView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.form == Form::MetadataOnly {
            return object::metadata_only(self.object).serialize(serializer);
        }
        let Some(fields) = self.object.as_object().filter(|_| !self.custom) else {
            return self.object.serialize(serializer);
        };
        // Items of built-in lists do not say what they are: the list does.
        serializer.collect_map(fields.iter().filter(|(field, _)| *field != "kind" && *field != "apiVersion"))
    }
}
