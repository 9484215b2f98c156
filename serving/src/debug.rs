//! The JSON of the debug endpoints; `docs/debug.md` states each field.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::{InformerStatus, Phase};
use kcm_framework::{ControllerState, ControllerStatus, LoopState, LoopStatus, ManagerHandle};
use serde_json::{Value, json};

/// `/debug/controllers`: the state of every controller.
#[must_use]
pub fn controllers(manager: &ManagerHandle) -> Value {
    let controllers: Vec<_> = manager.controllers().iter().map(controller).collect();
    json!({ "controllers": controllers })
}

/// `/debug/queues`: the queue of every reconcile loop.
#[must_use]
pub fn queues(manager: &ManagerHandle) -> Value {
    json!({ "queues": manager.queues() })
}

/// `/debug/caches`: the cache of every informer.
#[must_use]
pub fn caches(manager: &ManagerHandle) -> Value {
    let caches: Vec<_> = manager.caches().iter().map(|(status, bytes)| cache(status, Some(*bytes))).collect();
    json!({ "caches": caches })
}

/// Like [`caches`], without the memory of the objects: reads none of them.
pub(crate) fn informers(manager: &ManagerHandle) -> Value {
    let caches: Vec<_> = manager.informers().iter().map(|status| cache(status, None)).collect();
    json!({ "caches": caches })
}

/// Returns `/debug/controllers/NAME/keys/NAMESPACE/NAME`: the reason why a key was reconciled, and what it waits for.
/// Returns `None` if there is no such controller.
#[must_use]
pub fn key(manager: &ManagerHandle, controller: &str, object: &ObjectKey) -> Option<Value> {
    Some(json!({ "keys": manager.explain(controller, object)? }))
}

fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

fn controller(status: &ControllerStatus) -> Value {
    let (state, reason) = match &status.state {
        ControllerState::Disabled(reason) => ("Disabled", Some(reason)),
        ControllerState::Pending => ("Pending", None),
        ControllerState::Initializing => ("Initializing", None),
        ControllerState::Skipped => ("Skipped", None),
        ControllerState::Initialized => ("Initialized", None),
        ControllerState::WaitingForCaches => ("WaitingForCaches", None),
        ControllerState::Running => ("Running", None),
        ControllerState::Restarting => ("Restarting", None),
        ControllerState::Stopping => ("Stopping", None),
        ControllerState::Stopped => ("Stopped", None),
        _other => ("Unknown", None),
    };
    json!({
        "name": status.name,
        "state": state,
        "stateSeconds": seconds(status.state_for),
        "reason": reason,
        "failures": status.failures,
        "lastError": status.last_error,
        "loops": status.loops.iter().map(one_loop).collect::<Vec<_>>(),
    })
}

fn one_loop(status: &LoopStatus) -> Value {
    let state = match status.state {
        LoopState::Stopped => "Stopped",
        LoopState::WaitingForCaches => "WaitingForCaches",
        LoopState::Running => "Running",
        LoopState::Restarting => "Restarting",
        LoopState::Ended => "Ended",
        _other => "Unknown",
    };
    json!({
        "name": status.name,
        "state": state,
        "stateSeconds": seconds(status.state_for),
        "failures": status.failures,
        "lastError": status.last_error,
        "awaitingWrites": status.held.awaiting_writes,
        "awaitingWritesSeconds": seconds(status.held.longest_wait),
        "undecodableKeys": status.held.undecodable,
        "stalledSeconds": status.stall.as_ref().map(|stall| seconds(stall.duration)),
        "stalledKey": status.stall.as_ref().map(|stall| &stall.key),
        "unsynced": status.unsynced.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn cache(status: &InformerStatus, bytes: Option<usize>) -> Value {
    let phase = match status.phase {
        Phase::NotStarted => "NotStarted",
        Phase::Listing => "Listing",
        Phase::Watching => "Watching",
        Phase::BackingOff => "BackingOff",
        Phase::NotServed => "NotServed",
        Phase::Stopped => "Stopped",
    };
    json!({
        "resource": status.resource.to_string(),
        "kind": status.resource.kind,
        "version": status.resource.version,
        "selected": status.list_options.to_string(),
        "view": status.view,
        "alsoWatchedAs": status.also_watched_as,
        "synced": status.synced,
        "phase": phase,
        "phaseSeconds": seconds(status.phase_for),
        "reason": status.reason,
        "lastError": status.last_error,
        "objects": status.objects,
        "undecodable": status.undecodable,
        "bytes": bytes,
        "lists": status.lists,
        "lastEventSecondsAgo": status.last_event_ago.map(seconds),
        "confirmedSecondsAgo": status.confirmed_ago.map(seconds),
        "hasBookmarks": status.has_bookmarks,
        "resourceVersion": status.last_sync_resource_version.to_string(),
    })
}
