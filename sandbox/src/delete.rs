//! Deletion: preconditions, grace, finalizers. Pure.
//!
//! # Upstream
//! `apiserver/pkg/registry/rest/delete.go`, `Delete` of the generic registry, `pkg/registry/core/{pod,namespace}`

use std::sync::Arc;

use kcm_api::ObjectKey;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::admission::Attempt;
use crate::kinds::{Behaviour, EVENTS, Kind};
use crate::object;
use crate::request::{ListOptions, Query, Verb};
use crate::server::{Now, Server, Write};
use crate::status::{FieldError, Status};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a deletion asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// What became of the object.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It was removed; this was its last state.
    Gone(Arc<Value>),
    /// It waits for its grace period or its finalizers.
    Terminating(Arc<Value>),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Body {
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
    propagation_policy: Option<Value>,
    orphan_dependents: Option<bool>,
    dry_run: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    /// Reads the body, or the query where there is none.
    pub(crate) fn parse(query: &Query, body: &[u8]) -> Result<Self, Status> {
        let body = if body.is_empty() {
            Body {
                grace_period_seconds: query.get("gracePeriodSeconds").and_then(|text| text.parse().ok()),
                propagation_policy: query.get("propagationPolicy").map(Value::from),
                orphan_dependents: query.get("orphanDependents").map(|text| text == "true"),
                ..Body::default()
            }
        } else {
            serde_json::from_slice::<Option<Body>>(body)
                .map_err(|error| Status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?
                .unwrap_or_default()
        };
        let propagation = match body.propagation_policy {
            None => body.orphan_dependents.map(|it| if it { Propagation::Orphan } else { Propagation::Background }),
            Some(policy) => Some(serde_json::from_value(policy.clone()).map_err(|_| {
                let known = &["Foreground", "Background", "Orphan", "nil"];
                let errors = [FieldError::not_supported("propagationPolicy", policy, known)];
                Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors)
            })?),
        };
        let (uid, version) = body.preconditions.map_or((None, None), |it| (it.uid, it.resource_version));
        let dry_run = body.dry_run.is_some_and(|stages| !stages.is_empty());
        Ok(Self { grace: body.grace_period_seconds, uid, version, propagation, dry_run })
    }
}

/// How a deletion begins.
enum Start {
    /// The object is already as far as this deletion would bring it.
    Pending,
    /// A grace period is written to the object; 0 means that it can go at once.
    Graceful(i64),
    /// Kinds without grace.
    Plain,
}

impl Server {
    pub(crate) fn delete(&mut self, write: Write<'_>, options: &DeleteOptions) -> Result<Deleted, Status> {
        let kind = self.kind(&write.target.resource)?.clone();
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = object::key_of(&kind.resource, write.target.namespace.as_deref(), name);
        let Some(old) = self.store.get(&kind.resource, &key).cloned() else {
            return Err(Status::not_found(&kind.resource, name));
        };
        check_preconditions(&kind, &old, options)?;
        self.admit(&Attempt {
            verb: Verb::Delete,
            resource: &kind.resource,
            subresource: None,
            key: &key,
            object: None,
            old: Some(&old),
            store: &self.store,
        })?;
        let mut new = Value::clone(&old);
        if kind.behaviour == Behaviour::Namespace {
            return Ok(self.delete_namespace(write, &kind, key, &old, new, options));
        }
        let start = match kind.behaviour {
            Behaviour::Pod => start_gracefully(&mut new, options.grace, write.now),
            Behaviour::ReplicaSet
            | Behaviour::Deployment
            | Behaviour::Namespace
            | Behaviour::Plain
            | Behaviour::Custom => Start::Plain,
        };
        if matches!(start, Start::Pending) {
            return Ok(Deleted::Terminating(old));
        }
        set_collector_finalizers(&kind, &mut new, options);
        let waits = !object::finalizers(&new).is_empty();
        match start {
            Start::Graceful(period) => {
                let stored = self.replace(write, &kind, &key, &old, new);
                if waits || period > 0 {
                    return Ok(Deleted::Terminating(stored));
                }
            }
            Start::Plain | Start::Pending if waits => {
                mark_as_deleting(&mut new, write.now);
                return Ok(Deleted::Terminating(self.replace(write, &kind, &key, &old, new)));
            }
            Start::Plain | Start::Pending => {}
        }
        Ok(self.remove(write, &kind, &key, old))
    }

    pub(crate) fn delete_collection(
        &mut self,
        write: Write<'_>,
        query: &Query,
        options: &DeleteOptions,
    ) -> Result<Arc<Value>, Status> {
        let mut list = ListOptions::parse(query, false)?;
        list.continue_token = None;
        let listed = self.list(write.target, &list, None)?;
        for item in &listed.items {
            let mut target = write.target.clone();
            target.name = Some(object::name(item).to_owned());
            target.namespace = object::text(item, &["metadata", "namespace"]).map(str::to_owned);
            self.delete(Write { target: &target, ..write }, options)?;
        }
        Ok(Arc::new(listed.into_json(self.kind(&write.target.resource)?, false)))
    }

    /// The first deletion ends the namespace's life, the last waits until its content is gone.
    fn delete_namespace(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        key: ObjectKey,
        old: &Arc<Value>,
        mut new: Value,
        options: &DeleteOptions,
    ) -> Deleted {
        if !object::is_terminating(old) {
            object::set(&mut new, &["metadata", "deletionTimestamp"], Some(write.now.stamp(0).into()));
            object::set(&mut new, &["status", "phase"], Some("Terminating".into()));
            set_collector_finalizers(kind, &mut new, options);
            return Deleted::Terminating(self.commit(&kind.resource, key, new, write));
        }
        if object::list(old, &["spec", "finalizers"]).is_empty() && object::finalizers(old).is_empty() {
            return self.remove(write, kind, &key, old.clone());
        }
        Deleted::Terminating(old.clone())
    }

    fn replace(&mut self, write: Write<'_>, kind: &Kind, key: &ObjectKey, old: &Arc<Value>, new: Value) -> Arc<Value> {
        if new == **old { old.clone() } else { self.commit(&kind.resource, key.clone(), new, write) }
    }

    fn remove(&mut self, write: Write<'_>, kind: &Kind, key: &ObjectKey, old: Arc<Value>) -> Deleted {
        if write.dry_run {
            return Deleted::Gone(old);
        }
        Deleted::Gone(self.store.remove(&kind.resource, key, write.now.elapsed).unwrap_or(old))
    }
}

fn check_preconditions(kind: &Kind, old: &Value, options: &DeleteOptions) -> Result<(), Status> {
    // Upstream names the kind here, not the resource.
    let mut named = kind.resource.clone();
    named.plural = named.kind.clone();
    let name = object::name(old);
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object::uid(old)) {
        let stored = object::uid(old);
        return Err(Status::conflict(
            &named,
            name,
            &format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({stored}). The object might have been deleted and then recreated"
            ),
        ));
    }
    if let Some(version) = options.version.as_deref().filter(|version| *version != object::version(old)) {
        let stored = object::version(old);
        return Err(Status::conflict(
            &named,
            name,
            &format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({stored}). The object might have been modified"
            ),
        ));
    }
    Ok(())
}

/// Writes the grace period of a pod into it.
fn start_gracefully(pod: &mut Value, asked: Option<i64>, now: Now) -> Start {
    let asked = asked.map(|period| if period < 0 { 1 } else { period });
    if object::is_terminating(pod) {
        let current = object::at(pod, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        let current = current.unwrap_or(0);
        if current == 0 {
            return Start::Plain;
        }
        return match asked {
            Some(period) if period < current => {
                let period = shorten(pod, current, period, now);
                Start::Graceful(period)
            }
            Some(_) | None => Start::Pending,
        };
    }
    let configured = object::at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let unbound = object::text(pod, &["spec", "nodeName"]).unwrap_or_default().is_empty();
    let finished = matches!(object::text(pod, &["status", "phase"]), Some("Failed" | "Succeeded"));
    let period = if unbound || finished { 0 } else { asked.or(configured).unwrap_or(0).max(0) };
    object::set(pod, &["metadata", "deletionTimestamp"], Some(now.stamp(period).into()));
    object::set(pod, &["metadata", "deletionGracePeriodSeconds"], Some(period.into()));
    count_generation(pod);
    Start::Graceful(period)
}

/// Brings the end of a pod forward; it is never set to a time that is over.
fn shorten(pod: &mut Value, current: i64, asked: i64, now: Now) -> i64 {
    let end = object::text(pod, &["metadata", "deletionTimestamp"]).and_then(|text| text.parse().ok());
    let end = end.map_or(now.time.as_second(), jiff::Timestamp::as_second) - current + asked;
    let left = end - now.time.as_second();
    let period = if left < 0 && asked != 0 { 1 } else { asked };
    object::set(pod, &["metadata", "deletionTimestamp"], Some(now.stamp(left.max(0)).into()));
    object::set(pod, &["metadata", "deletionGracePeriodSeconds"], Some(period.into()));
    period
}

fn mark_as_deleting(object: &mut Value, now: Now) {
    if !object::is_terminating(object) {
        count_generation(object);
        object::set(object, &["metadata", "deletionTimestamp"], Some(now.stamp(0).into()));
    }
    object::set(object, &["metadata", "deletionGracePeriodSeconds"], Some(0.into()));
}

fn count_generation(object: &mut Value) {
    let generation = object::at(object, &["metadata", "generation"]).and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|generation| *generation > 0) {
        object::set(object, &["metadata", "generation"], Some((generation + 1).into()));
    }
}

/// Sets the finalizers that leave the dependents to the garbage collector.
fn set_collector_finalizers(kind: &Kind, object: &mut Value, options: &DeleteOptions) {
    if kind.resource == EVENTS {
        return;
    }
    let own = |name: &str| name == ORPHAN || name == FOREGROUND;
    let finalizers = object::finalizers(object);
    let wanted = match options.propagation {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None => finalizers.iter().copied().find(|name| own(name)),
    };
    let mut kept: Vec<&str> = finalizers.iter().copied().filter(|name| !own(name)).collect();
    kept.extend(wanted);
    // The same set in another order is no change.
    if kept.len() == finalizers.len() && kept.iter().all(|name| finalizers.contains(name)) {
        return;
    }
    let kept = (!kept.is_empty()).then(|| json!(kept));
    object::set(object, &["metadata", "finalizers"], kept);
}
