//! Schemas of kinds, read from the API server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kcm_cel::Type;
use kcm_framework::ReconcileError;
use kcm_framework::SharedReads;
use kcm_framework::client::{ApiClient, ApiError};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::kinds::{Kind, Role, type_name};
use super::schema::{Document, SchemaError};
use super::types::Types;
use super::warnings::Checker;

/// The longest document that is read, in bytes. The longest of Kubernetes has 1.5 MB.
const LONGEST_DOCUMENT: usize = 32 * 1024 * 1024;
/// The longest index that is read, in bytes.
const LONGEST_INDEX: usize = 4 * 1024 * 1024;
/// Number of kinds whose types are kept.
const KEPT_KINDS: usize = 32;
/// Time for which types and declarations are kept after the last check.
const KEPT_FOR: Duration = Duration::from_mins(1);

const INDEX: &str = "/openapi/v3";
const JSON: &str = "application/json";

/// The type of a kind with all types in it.
pub(super) type KnownTypes = Arc<(Type, Types)>;

/// The result of looking for the schema of a kind.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// The type, or `None` if expressions cannot see the kind.
    Type(Option<KnownTypes>),
    /// The API server serves no schema of the kind, or none that can be used.
    Missing,
}

/// A kind as it is cached.
struct Kept {
    kind: Kind,
    role: Role,
    /// URL of the document, which changes with its content.
    url: Arc<str>,
    found: Found,
}

/// URLs of the documents by group and version, such as `apis/apps/v1`.
type Urls = Arc<BTreeMap<String, Arc<str>>>;

#[derive(Deserialize)]
struct RawIndex {
    #[serde(default)]
    paths: BTreeMap<String, RawPath>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPath {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// Reads schemas from the API server, and keeps the types of the last kinds.
///
/// # Guarantees
/// - *The index is read at most once a second, and a document only if its URL differs*, which has a hash of its content.
/// - *One document is held at a time.* Documents are not kept, types of at most 32 kinds are, until a minute after the
///   last check.
#[derive(Default)]
pub(super) struct Schemas {
    index: SharedReads<String, Urls>,
    kept: Mutex<VecDeque<Kept>>,
    checker: Mutex<Option<Arc<Checker>>>,
    /// Held while a document is read.
    reading: tokio::sync::Mutex<()>,
    used: Mutex<Option<Instant>>,
    in_use: Notify,
}

impl Schemas {
    /// Returns the checker, which is built if it was dropped.
    pub(super) fn checker(&self) -> Arc<Checker> {
        self.touch();
        Arc::clone(self.checker.lock().get_or_insert_with(|| Arc::new(Checker::new())))
    }

    /// Looks for the schemas of kinds, in their order.
    ///
    /// # Errors
    /// If the API server does not respond. A document that it refuses, or that cannot be used, is
    /// [missing](Found::Missing).
    pub(super) async fn find(&self, kinds: &[(Kind, Role)], api: &ApiClient) -> Result<Vec<Found>, ReconcileError> {
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        self.touch();
        let urls = self.urls(api).await?;
        let mut found: Vec<Option<Found>> = vec![None; kinds.len()];
        for (at, (kind, role)) in kinds.iter().enumerate() {
            if found[at].is_some() {
                continue;
            }
            let path = path_of(kind);
            let Some(url) = urls.get(&path) else {
                found[at] = Some(Found::Missing);
                continue;
            };
            if let Some(kept) = self.kept(kind, *role, url) {
                found[at] = Some(kept);
                continue;
            }
            // Its document may have more kinds than are kept.
            let of_document: Vec<usize> = (at..kinds.len())
                .filter(|other| found[*other].is_none() && path_of(&kinds[*other].0) == path)
                .collect();
            let wanted: Vec<&(Kind, Role)> = of_document.iter().map(|other| &kinds[*other]).collect();
            for (other, types) in of_document.iter().zip(self.read(url, &wanted, api).await?) {
                found[*other] = Some(types);
            }
        }
        Ok(found.into_iter().map(|found| found.unwrap_or(Found::Missing)).collect())
    }

    /// Drops what is kept a minute after the last check, for ever.
    pub(super) async fn drop_unused(&self) {
        loop {
            let used = *self.used.lock();
            match used {
                Some(used) if used.elapsed() >= KEPT_FOR => {
                    *self.used.lock() = None;
                    self.kept.lock().clear();
                    *self.checker.lock() = None;
                }
                Some(used) => tokio::time::sleep_until(used + KEPT_FOR).await,
                None => self.in_use.notified().await,
            }
        }
    }

    fn touch(&self) {
        *self.used.lock() = Some(Instant::now());
        self.in_use.notify_one();
    }

    async fn urls(&self, api: &ApiClient) -> Result<Urls, ReconcileError> {
        let read = async {
            let body = api.get_path_within(INDEX, JSON, LONGEST_INDEX).await?;
            let index: RawIndex = serde_json::from_slice(&body).map_err(NoIndex)?;
            let urls = index.paths.into_iter().map(|(path, raw)| (path, Arc::from(raw.url)));
            Ok::<_, ReconcileError>(Arc::new(urls.collect()))
        };
        self.index.get(INDEX, None, read).await
    }

    /// Returns the types of kinds of one document, which is read at most once, and keeps them.
    async fn read(
        &self,
        url: &Arc<str>,
        wanted: &[&(Kind, Role)],
        api: &ApiClient,
    ) -> Result<Vec<Found>, ReconcileError> {
        let _reading = self.reading.lock().await;
        let kept: Option<Vec<Found>> = wanted.iter().map(|(kind, role)| self.kept(kind, *role, url)).collect();
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let body = match api.get_path_within(url, JSON, LONGEST_DOCUMENT).await {
            Ok(body) => body,
            Err(error) if is_of_document(&error) => {
                tracing::debug!(request = %error, reason = error.message(), "Cannot read an OpenAPI document");
                return Ok(vec![Found::Missing; wanted.len()]);
            }
            Err(error) => return Err(error.into()),
        };
        let document = std::str::from_utf8(&body).ok().map(Document::parse);
        let convert = |(kind, role): &&(Kind, Role)| {
            let found = convert(document.as_ref(), kind, *role);
            self.keep(Kept { kind: kind.clone(), role: *role, url: Arc::clone(url), found: found.clone() });
            found
        };
        Ok(wanted.iter().map(convert).collect())
    }

    fn kept(&self, kind: &Kind, role: Role, url: &str) -> Option<Found> {
        let mut kept = self.kept.lock();
        let is_it = |kept: &Kept| kept.role == role && *kept.url == *url && kept.kind == *kind;
        let at = kept.iter().position(is_it)?;
        let last = kept.remove(at)?;
        let found = last.found.clone();
        kept.push_back(last);
        Some(found)
    }

    fn keep(&self, new: Kept) {
        let mut kept = self.kept.lock();
        kept.retain(|kept| kept.role != new.role || kept.kind != new.kind);
        kept.push_back(new);
        if kept.len() > KEPT_KINDS {
            kept.pop_front();
        }
    }
}

/// The index of the documents is no index.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the index of the OpenAPI documents")]
struct NoIndex(#[source] serde_json::Error);

impl From<NoIndex> for ReconcileError {
    fn from(error: NoIndex) -> Self {
        Self::new(kcm_framework::Class::Transient, error)
    }
}

/// Returns `true` if the document is at fault, and not the API server: it was refused, is too long, or its aggregated
/// server does not respond.
fn is_of_document(error: &ApiError) -> bool {
    error.status().is_some() || matches!(error.cause(), kcm_framework::client::Cause::TooLarge { .. })
}

fn convert(document: Option<&Result<Document<'_>, SchemaError>>, kind: &Kind, role: Role) -> Found {
    let types = match document {
        Some(Ok(document)) => document.types_of(kind, &type_name(kind, role)),
        Some(Err(error)) => {
            tracing::debug!(%kind, error = %error, "Cannot use the OpenAPI document");
            return Found::Missing;
        }
        None => {
            tracing::debug!(%kind, "The OpenAPI document is not UTF-8");
            return Found::Missing;
        }
    };
    match types {
        Ok(types) => Found::Type(types.map(Arc::new)),
        Err(SchemaError::NotFound(_)) => Found::Missing,
        Err(error) => {
            tracing::debug!(%kind, error = %error, "Cannot use the schema of the kind");
            Found::Missing
        }
    }
}

/// Returns the path of the document of a kind, below `/openapi/v3`.
fn path_of(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}
