//! Get and list. Pure.
//!
//! # Upstream
//! `apiserver/pkg/storage`: the combinations of versions, limits and continue tokens

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::ObjectKey;
use serde_json::Value;

use crate::event_view;
use crate::json;
use crate::kinds::Kind;
use crate::request::{Form, ListOptions, Target, VersionMatch};
use crate::selection::{Selection, namespace_of};
use crate::server::Server;
use crate::server::pages::Token;
use crate::status::Status;
use crate::store::stored::{self, Stored};
use crate::table::Table;

const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) version: u64,
    pub(crate) items: Vec<Arc<Stored>>,
    continue_token: Option<String>,
    remaining: Option<usize>,
}

impl Server {
    pub(crate) fn get(&self, target: &Target) -> Result<Arc<Stored>, Status> {
        if target.subresource.as_deref() == Some("scale") {
            return Ok(Arc::new(Stored::new(&self.get_scale(target)?)));
        }
        let stored = self.get_object(target).cloned();
        stored
            .map(|stored| event_view::shown(&target.resource, stored))
            .map_err(|status| event_view::refusal(&target.resource, status))
    }

    /// Gets the object of a target, ignoring its subresource.
    pub(crate) fn get_object(&self, target: &Target) -> Result<&Arc<Stored>, Status> {
        let kind = self.stored_kind(&target.resource)?;
        let name = target.name.as_deref().unwrap_or_default();
        let key = json::key_of(&kind.resource, target.namespace.as_deref(), name);
        self.store.get(&kind.resource, &key).ok_or_else(|| Status::not_found(&kind.resource, name))
    }

    /// Lists a collection; `stale` is the version from which lists that allow an old state are served.
    pub(crate) fn list(&self, target: &Target, options: &ListOptions, stale: Option<u64>) -> Result<Listed, Status> {
        Ok(self.collection(target, options, stale)?.select())
    }

    /// Returns the collection of a list, so that selection happens outside of the lock.
    pub(crate) fn collection(
        &self,
        target: &Target,
        options: &ListOptions,
        stale: Option<u64>,
    ) -> Result<Collection, Status> {
        let kind = self.kind(&target.resource)?;
        let resource = event_view::stored_as(&kind.resource);
        let namespace = namespace_of(resource, target.namespace.as_deref());
        let selection = Selection::parse(kind, namespace, options.labels.as_deref(), options.fields.as_deref())?;
        let parse = |text| Token::parse(text, namespace, resource.namespaced);
        let token = options.continue_token.as_deref().map(parse).transpose()?;
        if token.is_some() && options.version.is_some_and(|version| version > 0) {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let version = match &token {
            Some(token) => token.version.unwrap_or(self.store.version()),
            None => self.version_to_list(options, stale)?,
        };
        let all: Vec<(ObjectKey, Arc<Stored>)> = if version == self.store.version() {
            self.store.list(resource, namespace).map(|(key, object)| (key.clone(), object.clone())).collect()
        } else {
            self.store.list_at(resource, namespace, version).map_err(|_| match &token {
                None => Status::expired(TOO_OLD),
                Some(token) => Status {
                    continue_token: Some(Token { version: None, after: token.after.clone() }.text(namespace.is_some())),
                    ..Status::expired(CONTINUE_TOO_OLD)
                },
            })?
        };
        // A list at any version ignores the limit, as from the watch cache.
        let any = options.version == Some(0) && options.version_match != Some(VersionMatch::Exact);
        let limit = options.limit.filter(|_| !any || token.is_some());
        Ok(Collection { version, all, after: token.map(|token| token.after), limit, selection })
    }

    fn version_to_list(&self, options: &ListOptions, stale: Option<u64>) -> Result<u64, Status> {
        let current = self.store.version();
        let requested = options.version.unwrap_or(0);
        if requested > current {
            return Err(Status::version_too_large(requested, current));
        }
        let exact = match options.version_match {
            Some(VersionMatch::Exact) => true,
            Some(VersionMatch::NotOlderThan) => false,
            None => requested > 0 && options.limit.is_some(),
        };
        if exact {
            return Ok(requested);
        }
        Ok(self.stale_version(options, stale))
    }

    /// Returns the version of a list or of initial events that need not be the latest.
    pub(crate) fn stale_version(&self, options: &ListOptions, stale: Option<u64>) -> u64 {
        let current = self.store.version();
        match (options.version, stale) {
            (Some(requested), Some(stale)) if stale >= requested => stale,
            _ => current,
        }
    }
}

/// The objects of one namespace or all at one version, and the selection.
pub(crate) struct Collection {
    version: u64,
    all: Vec<(ObjectKey, Arc<Stored>)>,
    /// The last object of the previous page.
    after: Option<ObjectKey>,
    limit: Option<usize>,
    selection: Selection,
}

impl Collection {
    pub(crate) fn select(self) -> Listed {
        let Self { version, all, after, limit, selection } = self;
        let rest = all
            .into_iter()
            .filter(|(key, object)| after.as_ref().is_none_or(|after| key > after) && selection.matches(key, object));
        page(version, rest.collect(), limit, &selection)
    }
}

fn page(version: u64, matching: Vec<(ObjectKey, Arc<Stored>)>, limit: Option<usize>, selection: &Selection) -> Listed {
    let total = matching.len();
    let kept = limit.map_or(total, |limit| limit.min(total));
    let token = |after: &ObjectKey| Token { version: Some(version), after: after.clone() };
    let continue_token = (kept < total).then(|| token(&matching[kept - 1].0).text(selection.namespace.is_some()));
    let remaining = (kept < total && !selection.has_selectors()).then(|| total - kept);
    let items = matching.into_iter().take(kept).map(|(_, object)| object).collect();
    Listed { version, items, continue_token, remaining }
}

/// Size of a chunk of a written list, in bytes.
const PIECE: usize = 64 * 1024;

impl Listed {
    pub(crate) fn into_json(self, kind: &Kind) -> Value {
        let text: String = self.into_pieces(kind, Form::Whole, Timestamp::UNIX_EPOCH).collect();
        stored::parse(&text)
    }

    /// Encodes the list lazily in chunks; `now` is the reference for ages.
    pub(crate) fn into_pieces(self, kind: &Kind, form: Form, now: Timestamp) -> impl Iterator<Item = String> + use<> {
        let metadata = self.metadata();
        let (head, items, tail) = match form {
            Form::Whole => (
                head(&format!("{}List", kind.resource.kind), &kind.resource.api_version(), &metadata),
                self.items,
                "]}",
            ),
            Form::MetadataOnly => (head("PartialObjectMetadataList", "meta.k8s.io/v1", &metadata), self.items, "]}"),
            Form::Table { include } => {
                let objects = self.items.iter().map(|object| &**object);
                let table = Table::of_list(kind, metadata, objects, include, now);
                (serde_json::to_string(&table).expect("a table of JSON is JSON"), Vec::new(), "")
            }
        };
        let (built_in, metadata_only) = (!kind.is_custom(), matches!(form, Form::MetadataOnly));
        let (mut piece, mut tail, mut is_first) = (head, Some(tail), true);
        let (mut items, resource) = (items.into_iter(), kind.resource.clone());
        std::iter::from_fn(move || {
            while piece.len() < PIECE
                && let Some(item) = items.next()
            {
                let item = event_view::shown(&resource, item);
                if !std::mem::take(&mut is_first) {
                    piece.push(',');
                }
                if metadata_only {
                    piece.push_str(&item.metadata_only());
                } else if built_in {
                    // Items of built-in lists have no `kind` and `apiVersion`; the list has.
                    piece.push('{');
                    piece.push_str(item.text_without_type());
                } else {
                    piece.push_str(item.text());
                }
            }
            if items.len() == 0
                && let Some(tail) = tail.take()
            {
                piece.push_str(tail);
            }
            Some(std::mem::take(&mut piece)).filter(|piece| !piece.is_empty())
        })
    }

    fn metadata(&self) -> Value {
        let mut metadata = serde_json::json!({ "resourceVersion": self.version.to_string() });
        if let Some(token) = &self.continue_token {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// The start of a list, up to its first item.
fn head(kind: &str, api_version: &str, metadata: &Value) -> String {
    format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[")
}
