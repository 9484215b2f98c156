//! [`Plant`]: bugs that are planted on the wire, to test that the search finds them.
//!
//! The gate changes requests, responses and lists as a controller with the bug would send or understand them. The product
//! stays as it is.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use kcm_sandbox_apiserver::{LineKind, WatchLine};
use serde_json::{Value, json};

use crate::deliver::Cache;
use crate::history::{History, Objects, Seen};
use crate::requests::Target;

/// A bug of a controller, as the API server or the controller would see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// Statuses are updated without the resource version of the object that was read.
    StatusWithoutVersion,
    /// Objects are updated without the resource version of the object that was read.
    UpdateWithoutVersion,
    /// Patches and deletions have no uid and no resource version as their precondition.
    NoPreconditions,
    /// A conflict is taken for success.
    ConflictIsSuccess,
    /// An error of the API server is taken for success.
    FailureIsSuccess,
    /// The controller does not wait until its caches show what it has written.
    OwnWritesAreForgotten,
    /// A live read is answered from the cache.
    LiveReadsAreCached,
    /// An object that exists already is taken for the object that was to be created.
    ExistingIsCreated,
    /// A list leaves objects in the cache that were deleted in the meantime.
    RelistKeepsDeleted,
}

/// A request and its surroundings.
pub(crate) struct Wire<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) sent: &'a Value,
    pub(crate) history: &'a History,
    /// The caches of the process now.
    pub(crate) seen: &'a Seen,
}

impl Plant {
    /// All bugs that can be planted.
    pub const ALL: [Self; 9] = [
        Self::StatusWithoutVersion,
        Self::UpdateWithoutVersion,
        Self::NoPreconditions,
        Self::ConflictIsSuccess,
        Self::FailureIsSuccess,
        Self::OwnWritesAreForgotten,
        Self::LiveReadsAreCached,
        Self::ExistingIsCreated,
        Self::RelistKeepsDeleted,
    ];

    /// Changes a request as a controller with the bug sends it.
    pub(crate) fn request(self, request: &mut Request<Bytes>) {
        let is_status = Target::of(request.uri()).is_some_and(|target| target.subresource == Some("status"));
        let (is_put, is_post) = (*request.method() == Method::PUT, *request.method() == Method::POST);
        let changes = match self {
            Self::StatusWithoutVersion => is_put && is_status,
            Self::UpdateWithoutVersion => is_put && !is_status,
            Self::NoPreconditions => !is_put && !is_post,
            Self::ConflictIsSuccess
            | Self::FailureIsSuccess
            | Self::OwnWritesAreForgotten
            | Self::LiveReadsAreCached
            | Self::ExistingIsCreated
            | Self::RelistKeepsDeleted => false,
        };
        let Some(mut body) = changes.then(|| serde_json::from_slice::<Value>(request.body()).ok()).flatten() else {
            return;
        };
        if let Some(body) = body.as_object_mut() {
            body.remove("preconditions");
            if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("resourceVersion");
                if !is_put {
                    metadata.remove("uid");
                }
            }
        }
        *request.body_mut() = Bytes::from(body.to_string());
    }

    /// Changes a response as a controller with the bug understands it.
    pub(crate) fn response(self, wire: &Wire<'_>, response: &mut Response<Bytes>) {
        let code = response.status().as_u16();
        let is_write = *wire.method != Method::GET;
        let is_post = *wire.method == Method::POST;
        match self {
            Self::ConflictIsSuccess if is_write && !is_post && code == 409 => succeed(wire, response),
            Self::FailureIsSuccess if is_write && code >= 500 => succeed(wire, response),
            Self::ExistingIsCreated if is_post && code == 409 => {
                let name = wire.sent["metadata"]["name"].as_str();
                if let Some(existing) = name.and_then(|name| stored(wire, Some(name))) {
                    set(response, &existing, 201);
                }
            }
            Self::OwnWritesAreForgotten if is_write && code < 300 => {
                let parsed = serde_json::from_slice::<Value>(response.body());
                if let Some(mut object) = parsed.ok().filter(|object| object["metadata"]["uid"].is_string()) {
                    // Nothing waits for a version that is no number.
                    object["metadata"]["resourceVersion"] = "unknown".into();
                    set(response, &object, code);
                }
            }
            Self::LiveReadsAreCached if !is_write => {
                if let Some(cached) = cached(wire) {
                    set(response, &cached, 200);
                }
            }
            Self::StatusWithoutVersion
            | Self::UpdateWithoutVersion
            | Self::NoPreconditions
            | Self::ConflictIsSuccess
            | Self::FailureIsSuccess
            | Self::OwnWritesAreForgotten
            | Self::LiveReadsAreCached
            | Self::ExistingIsCreated
            | Self::RelistKeepsDeleted => {}
        }
    }

    /// Changes a list that fills a cache again, which has received the events up to the version `known`.
    pub(crate) fn list(self, cache: &mut Cache, history: &History, known: Option<u64>) {
        let (Self::RelistKeepsDeleted, true, Some(known)) = (self, cache.lists(), known) else { return };
        let resource = cache.resource().clone();
        let now = objects(history, u64::MAX);
        for (key, object) in objects(history, known).remove(&resource).unwrap_or_default() {
            let exists = now.get(&resource).is_some_and(|objects| objects.contains_key(&key));
            if !exists {
                let line = json!({ "type": "ADDED", "object": &*object });
                let bytes = Bytes::from(format!("{line}\n"));
                cache.waiting.push_back(WatchLine { kind: LineKind::Added, object: None, bytes });
            }
        }
    }
}

/// Answers as if the write had been performed.
fn succeed(wire: &Wire<'_>, response: &mut Response<Bytes>) {
    let mut object = match stored(wire, None) {
        Some(stored) => stored,
        None if *wire.method == Method::POST => created(wire.sent),
        None => return,
    };
    if *wire.method == Method::PUT {
        let version = object["metadata"]["resourceVersion"].clone();
        object = wire.sent.clone();
        object["metadata"]["resourceVersion"] = version;
    }
    set(response, &object, if *wire.method == Method::POST { 201 } else { 200 });
}

/// An object as it would be created.
fn created(sent: &Value) -> Value {
    let mut object = sent.clone();
    if let Some(base) = object["metadata"]["generateName"].as_str().map(str::to_owned)
        && !object["metadata"]["name"].is_string()
    {
        object["metadata"]["name"] = format!("{base}xxxxx").into();
    }
    object["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    object["metadata"]["resourceVersion"] = "1".into();
    object
}

fn set(response: &mut Response<Bytes>, body: &Value, code: u16) {
    *response.body_mut() = Bytes::from(body.to_string());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    response.headers_mut().remove(http::header::CONTENT_LENGTH);
}

/// All objects at a version.
fn objects(history: &History, version: u64) -> Objects {
    let mut objects = history.start.clone();
    for change in history.changes.iter().take_while(|change| change.version <= version) {
        change.apply_to(&mut objects);
    }
    objects
}

/// The object of a request as the API server has it. The path of a creation does not have its name.
fn stored(wire: &Wire<'_>, name: Option<&str>) -> Option<Value> {
    let target = Target::of(wire.uri)?;
    let key = Target { name: name.or(target.name), ..target }.key()?;
    let objects = objects(wire.history, u64::MAX);
    let found = objects.iter().find(|(resource, _)| target.is_of(resource))?.1.get(&key)?;
    Some(Value::clone(found))
}

/// The object of a read as the cache has it.
fn cached(wire: &Wire<'_>) -> Option<Value> {
    let target = Target::of(wire.uri)?;
    let key = target.key()?;
    let objects = objects(wire.history, u64::MAX);
    let resource = objects.keys().find(|resource| target.is_of(resource))?;
    let object = wire.history.at_version(resource, &key, wire.seen.version(resource)?)?;
    Some(Value::clone(&object))
}
