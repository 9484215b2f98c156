//! Event mapping: the time at which a change of an autoscaler enqueues it.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::informers::Change;
use serde_json::value::RawValue;

/// Enqueues an autoscaler that is created or deleted at once, and so one whose spec has changed if `by_generation` is true.
/// Other changes, such as writes of the status, enqueue it after the sync period, as every sync does.
pub(super) fn keys_for_autoscaler(
    change: &Change<HorizontalPodAutoscaler>,
    period: Duration,
    by_generation: bool,
) -> Enqueue<ObjectKey> {
    let is_urgent = match change {
        Change::Added(_) | Change::Deleted { .. } => true,
        Change::Updated { old, new } => by_generation && has_new_spec(old, new),
        Change::Undecodable { .. } => false,
    };
    Enqueue { key: change.key().clone(), after: if is_urgent { Duration::ZERO } else { period } }
}

/// An API server before 1.37 never sets the generation of autoscalers, so the specs are compared.
fn has_new_spec(old: &HorizontalPodAutoscaler, new: &HorizontalPodAutoscaler) -> bool {
    match (old.metadata.generation, new.metadata.generation) {
        (0, 0) => spec(old) != spec(new),
        (old, new) => old != new,
    }
}

fn spec(autoscaler: &HorizontalPodAutoscaler) -> Option<&str> {
    autoscaler.raw(&["spec"]).map(RawValue::get)
}
