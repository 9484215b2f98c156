//! The API server without its transport: (state, request, now) in, answer out. Pure.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::Resource;
use serde_json::{Value, json};

use crate::admission::{Attempt, Hook};
use crate::delete::{DeleteOptions, Deleted};
use crate::kinds::{Behaviour, Kind, Kinds, NAMESPACES};
use crate::random::Random;
use crate::request::{Query, Target, Verb};
use crate::status::Status;
use crate::storage::Store;
use crate::{object, patch};

/// The time of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Since the sandbox was made.
    pub(crate) elapsed: Duration,
    /// As objects are stamped.
    pub(crate) time: Timestamp,
}

impl Now {
    /// As objects carry times: whole seconds.
    pub(crate) fn stamp(self, after_seconds: i64) -> String {
        let second = self.time.as_second().saturating_add(after_seconds);
        kcm_api::time::format_seconds(Timestamp::from_second(second).unwrap_or(Timestamp::MAX))
    }
}

/// A write, as far as all writes are alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) target: &'a Target,
    pub(crate) dry_run: bool,
    pub(crate) now: Now,
}

/// The whole state of the API server.
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    pub(crate) random: Random,
    pub(crate) hooks: Vec<Hook>,
}

impl Server {
    pub(crate) fn new(window: usize, seed: u64) -> Self {
        Self { store: Store::new(window), kinds: Kinds::built_in(), random: Random::new(seed), hooks: Vec::new() }
    }

    /// Makes the namespaces that every cluster has.
    pub(crate) fn create_first_namespaces(&mut self, now: Now) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let target =
                Target { verb: Verb::Create, resource: NAMESPACES, namespace: None, name: None, subresource: None };
            let write = Write { target: &target, dry_run: false, now };
            self.create(write, json!({ "metadata": { "name": name } })).expect("a first namespace must be valid");
        }
    }

    pub(crate) fn kind(&self, resource: &Resource) -> Result<&Kind, Status> {
        self.kinds.get(resource).ok_or_else(Status::not_served)
    }

    /// Performs a write that came as bytes; the answer is a code and an object.
    pub(crate) fn write(
        &mut self,
        target: &Target,
        query: &Query,
        content_type: &str,
        body: &[u8],
        now: Now,
    ) -> Result<(u16, Arc<Value>), Status> {
        let kind = self.kind(&target.resource)?.clone();
        let mut write = Write { target, dry_run: query.dry_run()?, now };
        match target.verb {
            Verb::Create if target.subresource.as_deref() == Some("binding") => {
                let binding = read_json(&kind, content_type, body)?;
                Ok((201, self.bind(write, &binding)?))
            }
            Verb::Create => Ok((201, self.create(write, read_object(&kind, content_type, body)?)?)),
            Verb::Update => Ok((200, self.update(write, read_object(&kind, content_type, body)?)?)),
            Verb::Patch => Ok((200, self.patch(write, |old| patch::apply(content_type, old, body, kind.is_custom()))?)),
            Verb::Delete => {
                let options = DeleteOptions::parse(query, body)?;
                write.dry_run |= options.dry_run;
                let deleted = self.delete(write, &options)?;
                Ok((200, answer_delete(&kind, deleted)))
            }
            Verb::DeleteCollection => {
                let options = DeleteOptions::parse(query, body)?;
                write.dry_run |= options.dry_run;
                Ok((200, self.delete_collection(write, query, &options)?))
            }
            Verb::Get | Verb::List | Verb::Watch => unreachable!("reads do not come here"),
        }
    }

    /// Asks the hooks of tests.
    pub(crate) fn admit(&self, attempt: &Attempt<'_>) -> Result<(), Status> {
        self.hooks.iter().try_for_each(|hook| hook(attempt))
    }
}

/// # Upstream
/// `finalizeDelete` of the generic registry: few kinds answer with the object.
fn answer_delete(kind: &Kind, deleted: Deleted) -> Arc<Value> {
    match deleted {
        Deleted::Terminating(object) => object,
        Deleted::Gone(object) if matches!(kind.behaviour, Behaviour::Pod | Behaviour::Namespace) => object,
        Deleted::Gone(last) => {
            let mut details = json!({
                "name": object::name(&last),
                "kind": kind.resource.plural,
                "uid": object::uid(&last),
            });
            if !kind.resource.group.is_empty() {
                details["group"] = json!(kind.resource.group);
            }
            Arc::new(json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
            }))
        }
    }
}

fn read_json(kind: &Kind, content_type: &str, body: &[u8]) -> Result<Value, Status> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media_type, "" | "application/json") {
        return Err(Status::unsupported_media_type(&["application/json"]));
    }
    let unrecognized = |why: String| {
        let (kind, version) = (&kind.resource.kind, kind.resource.api_version());
        Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({version})"))
    };
    let object: Value = serde_json::from_slice(body)
        .map_err(|error| unrecognized(format!("couldn't get version/kind; json parse error: {error}")))?;
    if object.is_object() { Ok(object) } else { Err(unrecognized("not an object".to_owned())) }
}

fn read_object(kind: &Kind, content_type: &str, body: &[u8]) -> Result<Value, Status> {
    let object = read_json(kind, content_type, body)?;
    check_kind(kind, &object)?;
    Ok(object)
}

/// Refuses an object that says it is of another kind or version.
pub(crate) fn check_kind(kind: &Kind, object: &Value) -> Result<(), Status> {
    let resource = &kind.resource;
    let version = object::text(object, &["apiVersion"]).filter(|version| !version.is_empty());
    let name = object::text(object, &["kind"]).filter(|name| !name.is_empty());
    if version.is_none_or(|version| version == resource.api_version()) && name.is_none_or(|name| name == resource.kind)
    {
        return Ok(());
    }
    let (version, name) = (version.unwrap_or_default(), name.unwrap_or_default());
    Err(Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {}", resource.kind)))
}
