//! OpenAPI v3 documents. Pure.
//!
//! A document describes one version of one group: the types of its objects and the paths to them. It is rendered on
//! request and not cached; the hash in its URL lets clients cache it.
//!
//! # Upstream
//! `kube-openapi/pkg/handler3`, and the documents in `api/openapi-spec/v3` of Kubernetes. There are no documents of
//! what is not a version of a group (`/openapi/v3/version` and the like), no addresses of single watches, and few
//! descriptions.

mod descriptions;
mod paths;
mod schemas;

use std::sync::LazyLock;

use http::header;
use serde_json::{Map, Value, json};

use kcm_api::Fnv1a;

use crate::describe::document::{DiscoveryDocument, DiscoveryRequest, JSON, TEXT};
use crate::describe::group_version::GroupVersion;
use crate::describe::tag::hex;
use crate::kinds::{Kind, Kinds};

/// Returns the index of the documents, or one document.
pub(crate) fn answer(kinds: &Kinds, path: &[&str], request: &DiscoveryRequest<'_>) -> DiscoveryDocument {
    let of = match path {
        [] => return DiscoveryDocument::json(&index(kinds)),
        ["api", version] => GroupVersion { group: "", version },
        ["apis", group, version] => GroupVersion { group, version },
        _ => return DiscoveryDocument::new(404, TEXT, ""),
    };
    let hash = version_hash(kinds, of);
    let given = request.query.get("hash");
    if given.is_some_and(|given| given != hash) {
        let moved = DiscoveryDocument::new(301, JSON, "");
        return moved.header(header::LOCATION, &address(kinds, of)).tagged(&hash, request);
    }
    let Some(document) = document(kinds, of) else { return DiscoveryDocument::new(404, TEXT, "") };
    let answer = DiscoveryDocument::json(&document).tagged(&hash, request);
    if given.is_some() { answer.header(header::CACHE_CONTROL, "public, immutable") } else { answer }
}

/// Returns the URLs of all documents.
fn index(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    for kind in kinds.iter() {
        let of = GroupVersion::of(kind);
        paths.entry(of.path()).or_insert_with(|| json!({ "serverRelativeURL": address(kinds, of) }));
    }
    json!({ "paths": paths })
}

/// Returns the URL of a document, which clients may cache.
fn address(kinds: &Kinds, of: GroupVersion<'_>) -> String {
    format!("/openapi/v3/{}?hash={}", of.path(), version_hash(kinds, of))
}

/// Returns a hash that changes with the document: of the served kinds and the schema tables.
fn version_hash(kinds: &Kinds, of: GroupVersion<'_>) -> String {
    static TABLES: LazyLock<u64> = LazyLock::new(|| {
        Fnv1a::new().part(crate::schema::TABLE).part(descriptions::TABLE).part(env!("CARGO_PKG_VERSION")).value()
    });
    let mut hash = Fnv1a::new().part(&TABLES.to_string());
    for kind in members(kinds, of) {
        hash = hash.part(&format!("{kind:?}"));
    }
    hex(hash.value())
}

/// Returns a document; `None` if no kind of this version is served.
fn document(kinds: &Kinds, of: GroupVersion<'_>) -> Option<Value> {
    let members: Vec<&Kind> = members(kinds, of).collect();
    if members.is_empty() {
        return None;
    }
    let mut schemas = schemas::Schemas::default();
    let mut paths = Map::new();
    for kind in members {
        paths::describe(kind, &mut schemas, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.37.2" },
        "paths": paths,
        "components": { "schemas": schemas.into_components() },
    }))
}

fn members<'a>(kinds: &'a Kinds, of: GroupVersion<'a>) -> impl Iterator<Item = &'a Kind> {
    kinds.iter().map(AsRef::as_ref).filter(move |kind| GroupVersion::of(kind) == of)
}

#[cfg(test)]
mod tests;
