//! The API server without transport: (state, request, now) in, response out. Pure.

pub(crate) mod admission;
pub(crate) mod apply;
pub(crate) mod crds;
pub(crate) mod delete;
pub(crate) mod expiry;
pub(crate) mod keep;
pub(crate) mod pages;
pub(crate) mod pod_log;
pub(crate) mod preconditions;
pub(crate) mod reads;
pub(crate) mod reviews;
pub(crate) mod subresource;
pub(crate) mod usage;
pub(crate) mod watch;
pub(crate) mod writes;

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::Resource;
use serde_json::{Value, json};

use crate::decode::{Decoder, Expected, FieldValidation};
use crate::defaults::Allocations;
use crate::event_view;
use crate::json;
use crate::kinds::strategy;
use crate::kinds::{Behaviour, Kind, Kinds, NAMESPACES};
use crate::options::SandboxOptions;
use crate::patch;
use crate::patch::Patched;
use crate::random::{Identities, Random};
use crate::request::{FieldManager, Now, Query, Target, Verb, Write, manager_of};
use crate::schema;
use crate::server::admission::{Attempt, Hook};
use crate::server::delete::{DeleteOptions, Deleted};
use crate::server::expiry::Expiry;
use crate::status::Status;
use crate::store::storage::Store;

/// Responds to a path and its decoded query; absent if no response is ever sent.
pub(crate) type PathHandler = Arc<dyn Fn(&str, &Query) -> Option<Result<Value, Status>> + Send + Sync>;

/// The body and parameters of a write request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub(crate) content_type: &'a str,
    pub(crate) user_agent: &'a str,
    pub(crate) body: &'a [u8],
}

/// The whole state of the API server. A clone shares stored objects, past events and hooks, none of which change.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) kinds: Kinds,
    /// The durations of watches.
    pub(crate) random: Random,
    pub(crate) identities: Identities,
    pub(crate) allocations: Allocations,
    pub(crate) hooks: Vec<Hook>,
    /// Handlers by path, beside the kinds.
    pub(crate) aggregated: Vec<(String, PathHandler)>,
    /// Resources whose controllers do not run; creating such an object returns a warning.
    pub(crate) unreconciled: BTreeSet<Resource>,
    pub(crate) expiry: Expiry,
    pub(crate) managed_fields: bool,
    keep_unknown_fields: bool,
}

impl Server {
    pub(crate) fn new(options: &SandboxOptions) -> Self {
        Self {
            store: Store::new(options.watch_window),
            kinds: Kinds::built_in(options.beta_apis),
            random: Random::new(options.seed),
            identities: Identities::new(options.seed),
            allocations: Allocations::default(),
            hooks: Vec::new(),
            aggregated: Vec::new(),
            unreconciled: BTreeSet::new(),
            expiry: Expiry::default(),
            managed_fields: options.managed_fields,
            keep_unknown_fields: options.keep_unknown_fields,
        }
    }

    /// Creates the initial namespaces of a cluster.
    pub(crate) fn create_first_namespaces(&mut self, now: Now) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let target =
                Target { verb: Verb::Create, resource: NAMESPACES, namespace: None, name: None, subresource: None };
            let field_manager = FieldManager { name: "kube-apiserver", applied: false };
            let write = Write { target: &target, dry_run: false, field_manager, now };
            self.create(write, json!({ "metadata": { "name": name } })).expect("a first namespace must be valid");
        }
    }

    pub(crate) fn kind(&self, resource: &Resource) -> Result<&Arc<Kind>, Status> {
        self.kinds.get(resource).ok_or_else(Status::not_served)
    }

    /// Returns the kind under which objects of a resource are stored.
    pub(crate) fn stored_kind(&self, resource: &Resource) -> Result<&Arc<Kind>, Status> {
        self.kind(event_view::stored_as(resource))
    }

    /// Returns a decoder for objects of direct writes: a wrong type is an error, an unknown field is dropped silently.
    pub(crate) fn reader(&self, target: &Target) -> Result<impl Fn(Value) -> Result<Value, Status> + use<>, Status> {
        let kind = self.stored_kind(&target.resource)?.clone();
        let (subresource, keep_unknown) = (target.subresource.clone(), self.keep_unknown_fields);
        Ok(move |object| {
            let mut decoder = Decoder {
                expected: Expected::of(&kind, subresource.as_deref()),
                validation: FieldValidation::Ignore,
                keep_unknown,
                warnings: &mut Vec::new(),
            };
            decoder.value(object)
        })
    }

    /// Performs a write request; returns the HTTP code and the object.
    pub(crate) fn write(
        &mut self,
        target: &Target,
        query: &Query,
        sent: Sent<'_>,
        now: Now,
        warnings: &mut Vec<String>,
    ) -> Result<(u16, Arc<Value>), Status> {
        let resource = &target.resource;
        let makes = target.verb == Verb::Create && target.subresource.is_none();
        if makes && self.unreconciled.contains(resource) {
            let plural = &resource.plural;
            warnings.push(format!(
                "no controller for {plural} runs in this sandbox: it is stored and nothing else happens"
            ));
        }
        match self.write_stored(target, query, sent, now, warnings) {
            Ok((code, stored)) if event_view::is_view(resource) => {
                Ok((code, Arc::new(event_view::outward(resource, Arc::unwrap_or_clone(stored)))))
            }
            written => written.map_err(|status| event_view::refusal(resource, status)),
        }
    }

    /// Like [`Server::write`]; returns the object in its stored form.
    fn write_stored(
        &mut self,
        target: &Target,
        query: &Query,
        sent: Sent<'_>,
        now: Now,
        warnings: &mut Vec<String>,
    ) -> Result<(u16, Arc<Value>), Status> {
        let kind = self.kind(&target.resource)?.clone();
        let Sent { content_type, user_agent, body } = sent;
        let applies = target.verb == Verb::Patch && patch::is_apply(content_type);
        let manager = manager_of(target.verb, query, applies, user_agent)?;
        let field_manager = FieldManager { name: &manager, applied: false };
        let mut write = Write { target, dry_run: query.dry_run(target.verb, applies)?, field_manager, now };
        let mut decoder = Decoder {
            expected: Expected::of(&kind, target.subresource.as_deref()),
            validation: FieldValidation::parse(query, target.verb)?,
            keep_unknown: self.keep_unknown_fields,
            warnings,
        };
        let inward = |sent| event_view::inward(&target.resource, sent);
        let outward = |stored| event_view::outward(&target.resource, stored);
        match target.verb {
            Verb::Create => {
                let object = inward(decoder.body(content_type, body)?);
                match target.subresource.as_deref() {
                    Some("binding") => Ok((201, self.bind(write, &object)?)),
                    Some("eviction") => Ok((201, self.evict(write, &object)?)),
                    Some(_) => Err(Status::not_served()),
                    None if kind.behaviour == Behaviour::Review => {
                        let answer = reviews::answer(&kind, target.namespace.as_deref(), &object, now)?;
                        Ok((201, Arc::new(answer)))
                    }
                    None => Ok((201, self.create(write, object)?)),
                }
            }
            Verb::Update => self.update(write, inward(decoder.body(content_type, body)?)),
            Verb::Patch if applies && self.managed_fields => {
                let force = query.flag("force").unwrap_or(false);
                let configuration = inward(decoder.applied(body)?);
                self.apply(write, &configuration, force, |merged| decoder.merged(outward(merged)).map(inward))
            }
            Verb::Patch => {
                let of = patched(&kind, target.subresource.as_deref());
                patch::check_type(content_type, of)?;
                let laid_over = |old: &Value| patch::apply(content_type, &outward(old.clone()), body, of);
                let patch = |old: &Value| decoder.patched(content_type, body, || laid_over(old)).map(inward);
                Ok((200, self.patch(write, patch)?))
            }
            Verb::Delete => {
                let options = DeleteOptions::parse(query, content_type, body)?;
                write.dry_run |= options.dry_run;
                Ok(match self.delete(write, &options)? {
                    Deleted::Terminating(object) if options.cascades => (202, object),
                    Deleted::Terminating(object) => (200, object),
                    Deleted::Gone(last) => (200, answer_deleted(&kind, last)),
                })
            }
            Verb::DeleteCollection => {
                let options = DeleteOptions::parse(query, content_type, body)?;
                write.dry_run |= options.dry_run;
                Ok((200, self.delete_collection(write, query, &options)?))
            }
            Verb::Get | Verb::List | Verb::Watch => unreachable!("reads do not come here"),
        }
    }

    /// Runs the admission hooks.
    pub(crate) fn admit(&self, attempt: &Attempt<'_>) -> Result<(), Status> {
        self.hooks.iter().try_for_each(|hook| hook(attempt))
    }
}

/// Returns how objects of a kind, or of its subresource, are patched.
fn patched(kind: &Kind, subresource: Option<&str>) -> Patched {
    let resource = &kind.resource;
    if kind.is_custom() {
        return Patched::Custom;
    }
    Patched::BuiltIn(match subresource.and_then(|name| kind.subresource(name)) {
        Some(part) => schema::types().of_kind(&part.group, &part.version, &part.kind),
        None => schema::types().of_kind(&resource.group, &resource.version, &resource.kind),
    })
}

/// Builds the response for a removed object.
///
/// # Upstream
/// `finalizeDelete` of the generic registry
fn answer_deleted(kind: &Kind, last: Arc<Value>) -> Arc<Value> {
    if strategy::delete_answers_with_object(kind) {
        return last;
    }
    let mut details = json!({ "name": json::name(&last), "kind": kind.resource.plural, "uid": json::uid(&last) });
    if !kind.resource.group.is_empty() {
        details["group"] = json!(kind.resource.group);
    }
    Arc::new(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    }))
}

/// Builds the `Success` status for a write that creates no object.
pub(crate) fn created() -> Arc<Value> {
    Arc::new(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }))
}

/// Rejects an object with another kind or version than the request.
pub(crate) fn check_kind(kind: &Kind, object: &Value) -> Result<(), Status> {
    let resource = &kind.resource;
    let version = json::text(object, &["apiVersion"]).filter(|version| !version.is_empty());
    let name = json::text(object, &["kind"]).filter(|name| !name.is_empty());
    if version.is_none_or(|version| version == resource.api_version()) && name.is_none_or(|name| name == resource.kind)
    {
        return Ok(());
    }
    let (version, name) = (version.unwrap_or_default(), name.unwrap_or_default());
    Err(Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {}", resource.kind)))
}
