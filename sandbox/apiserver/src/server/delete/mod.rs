//! Deletion: grace periods, finalizers, collections. Pure.
//!
//! # Upstream
//! `apiserver/pkg/registry/rest/delete.go`, `Delete` of the generic registry, `pkg/registry/core/{pod,namespace}`

mod options;

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::ObjectKey;
use serde_json::{Value, json};

pub use options::{DeleteOptions, Propagation};

use crate::json;
use crate::kinds::strategy;
use crate::kinds::{Behaviour, EVENTS, Kind};
use crate::request::{ListOptions, Query, Verb};
use crate::request::{Now, Write};
use crate::server::Server;
use crate::server::admission::Attempt;
use crate::status::Status;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Namespaces that cannot be deleted.
///
/// # Upstream
/// `apiserver/pkg/admission/plugin/namespace/lifecycle`
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The outcome of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is removed; this is its last state.
    Gone(Arc<Value>),
    /// The object waits for its grace period or its finalizers.
    Terminating(Arc<Value>),
}

/// The first step of a deletion.
enum Start {
    /// The object is already terminating, and this deletion changes nothing.
    Pending,
    /// A grace period is written to the object; 0 means immediate removal.
    Graceful(i64),
    /// The kind has no grace period.
    Plain,
}

impl Server {
    pub(crate) fn delete(&mut self, write: Write<'_>, options: &DeleteOptions) -> Result<Deleted, Status> {
        let kind = self.stored_kind(&write.target.resource)?.clone();
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = json::key_of(&kind.resource, write.target.namespace.as_deref(), name);
        let Some(old) = self.store.value(&kind.resource, &key) else {
            return Err(Status::not_found(&kind.resource, name));
        };
        options.check(&kind, &old)?;
        if kind.behaviour == Behaviour::Namespace && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(&kind.resource, name, "this namespace may not be deleted"));
        }
        self.admit(&Attempt {
            verb: Verb::Delete,
            resource: &kind.resource,
            subresource: None,
            key: &key,
            object: None,
            old: Some(&old),
            store: &self.store,
        })?;
        if kind.behaviour == Behaviour::Namespace {
            return Ok(self.delete_namespace(write, &kind, key, &old, options));
        }
        if kind.is_definition() {
            return Ok(self.delete_definition(write, &kind, &key, &old));
        }
        let mut new = Value::clone(&old);
        let start = if kind.behaviour == Behaviour::Pod {
            start_gracefully(&mut new, options.grace, write.now)
        } else {
            Start::Plain
        };
        if matches!(start, Start::Pending) {
            return Ok(Deleted::Terminating(old));
        }
        set_collector_finalizers(&kind, &mut new, options);
        let waits = !json::finalizers(&new).is_empty();
        match start {
            Start::Graceful(period) => {
                let stored = self.replace(write, &kind, &key, &old, new);
                if waits || period > 0 {
                    return Ok(Deleted::Terminating(stored));
                }
                if write.dry_run {
                    return Ok(Deleted::Gone(stored));
                }
            }
            Start::Plain | Start::Pending if waits => {
                mark_as_deleting(&mut new, write.now);
                return Ok(Deleted::Terminating(self.replace(write, &kind, &key, &old, new)));
            }
            Start::Plain | Start::Pending => {}
        }
        Ok(Deleted::Gone(self.discard(write, &kind, &key, old)))
    }

    pub(crate) fn delete_collection(
        &mut self,
        write: Write<'_>,
        query: &Query,
        options: &DeleteOptions,
    ) -> Result<Arc<Value>, Status> {
        let listed = self.list(write.target, &ListOptions::parse(query, false)?, None)?;
        for item in &listed.items {
            let item = item.value();
            let mut target = write.target.clone();
            target.name = Some(json::name(&item).to_owned());
            target.namespace = json::text(&item, &["metadata", "namespace"]).map(str::to_owned);
            match self.delete(Write { target: &target, ..write }, options) {
                Err(status) if status.code != 404 => return Err(status),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(Arc::new(listed.into_json(self.kind(&write.target.resource)?)))
    }

    /// The first deletion sets the namespace to `Terminating`; removal waits until its finalizers are empty.
    fn delete_namespace(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        key: ObjectKey,
        old: &Arc<Value>,
        options: &DeleteOptions,
    ) -> Deleted {
        if !json::is_terminating(old) {
            let mut new = Value::clone(old);
            json::set(&mut new, &["metadata", "deletionTimestamp"], Some(write.now.stamp(0).into()));
            json::set(&mut new, &["status", "phase"], Some("Terminating".into()));
            set_collector_finalizers(kind, &mut new, options);
            return Deleted::Terminating(self.commit(kind, key, new, write));
        }
        if json::list(old, &["spec", "finalizers"]).is_empty() && json::finalizers(old).is_empty() {
            return Deleted::Gone(self.discard(write, kind, &key, old.clone()));
        }
        Deleted::Terminating(old.clone())
    }

    fn replace(&mut self, write: Write<'_>, kind: &Kind, key: &ObjectKey, old: &Arc<Value>, new: Value) -> Arc<Value> {
        if new == **old { old.clone() } else { self.commit(kind, key.clone(), new, write) }
    }

    /// Removes an object from the store; returns its last state.
    pub(crate) fn discard(&mut self, write: Write<'_>, kind: &Kind, key: &ObjectKey, last: Arc<Value>) -> Arc<Value> {
        if write.dry_run {
            return last;
        }
        let last = self.store.remove(&kind.resource, key, write.now.elapsed).unwrap_or(last);
        self.removed(kind, key, write);
        last
    }
}

/// Sets the grace period of a pod.
fn start_gracefully(pod: &mut Value, requested: Option<i64>, now: Now) -> Start {
    let requested = requested.map(|period| if period < 0 { 1 } else { period });
    if json::is_terminating(pod) {
        let current = json::at(pod, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        let current = current.unwrap_or(0);
        if current == 0 {
            return Start::Plain;
        }
        return match requested {
            Some(period) if period < current => {
                let period = shorten(pod, current, period, now);
                Start::Graceful(period)
            }
            Some(_) | None => Start::Pending,
        };
    }
    let configured = json::at(pod, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let unbound = json::text(pod, &["spec", "nodeName"]).unwrap_or_default().is_empty();
    let finished = matches!(json::text(pod, &["status", "phase"]), Some("Failed" | "Succeeded"));
    let period = if unbound || finished { 0 } else { requested.or(configured).unwrap_or(0) };
    let period = if period < 0 { 1 } else { period };
    json::set(pod, &["metadata", "deletionTimestamp"], Some(now.stamp(period).into()));
    json::set(pod, &["metadata", "deletionGracePeriodSeconds"], Some(period.into()));
    count_generation(pod);
    Start::Graceful(period)
}

/// Shortens the grace period of a terminating pod; the new end is never in the past.
fn shorten(pod: &mut Value, current: i64, requested: i64, now: Now) -> i64 {
    let end = json::text(pod, &["metadata", "deletionTimestamp"]).and_then(|text| text.parse().ok());
    let end = end.map_or(now.time.as_second(), jiff::Timestamp::as_second) - current + requested;
    let left = end - now.time.as_second();
    let period = if left < 0 && requested != 0 { 1 } else { requested };
    json::set(pod, &["metadata", "deletionTimestamp"], Some(now.stamp(left.max(0)).into()));
    json::set(pod, &["metadata", "deletionGracePeriodSeconds"], Some(period.into()));
    period
}

fn mark_as_deleting(object: &mut Value, now: Now) {
    if !json::is_terminating(object) {
        count_generation(object);
    }
    let due = json::text(object, &["metadata", "deletionTimestamp"]).and_then(|text| text.parse().ok());
    if due.is_none_or(|due: jiff::Timestamp| due > now.time) {
        json::set(object, &["metadata", "deletionTimestamp"], Some(now.stamp(0).into()));
    }
    json::set(object, &["metadata", "deletionGracePeriodSeconds"], Some(0.into()));
}

fn count_generation(object: &mut Value) {
    let generation = json::at(object, &["metadata", "generation"]).and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|generation| *generation > 0) {
        json::set(object, &["metadata", "generation"], Some((generation + 1).into()));
    }
}

/// Sets the `orphan` and `foregroundDeletion` finalizers, which the garbage collector handles.
fn set_collector_finalizers(kind: &Kind, object: &mut Value, options: &DeleteOptions) {
    if kind.resource == EVENTS {
        return;
    }
    let own = |name: &str| name == ORPHAN || name == FOREGROUND;
    let finalizers = json::finalizers(object);
    let wanted = match options.propagation {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None => {
            let default = strategy::orphans_by_default(&kind.resource).then_some(ORPHAN);
            finalizers.iter().copied().find(|name| own(name)).or(default)
        }
    };
    let mut kept: Vec<&str> = finalizers.iter().copied().filter(|name| !own(name)).collect();
    kept.extend(wanted);
    // The order of finalizers is insignificant.
    let known: BTreeSet<&str> = finalizers.iter().copied().collect();
    if kept.len() == finalizers.len() && kept.iter().all(|name| known.contains(name)) {
        return;
    }
    let kept = (!kept.is_empty()).then(|| json!(kept));
    json::set(object, &["metadata", "finalizers"], kept);
}
