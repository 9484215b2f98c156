//! Event mapping: the time at which a change of an autoscaler enqueues it.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::informers::Change;
use serde_json::value::RawValue;

/// Enqueues an autoscaler after the sync period, as every sync does, so that each is synced once in a period, whatever
/// changes. A deleted autoscaler is enqueued at once, to be forgotten. If `on_spec_change` is true, a new autoscaler, or one
/// whose spec has changed, is enqueued at once too.
pub(super) fn keys_for_autoscaler(
    change: &Change<HorizontalPodAutoscaler>,
    period: Duration,
    on_spec_change: bool,
) -> Enqueue<ObjectKey> {
    let is_urgent = match change {
        Change::Added(_) => on_spec_change,
        Change::Updated { old, new } => on_spec_change && spec(old) != spec(new),
        Change::Undecodable { .. } => false,
        Change::Deleted { .. } => true,
    };
    Enqueue { key: change.key().clone(), after: if is_urgent { Duration::ZERO } else { period } }
}

fn spec(autoscaler: &HorizontalPodAutoscaler) -> Option<&str> {
    autoscaler.raw(&["spec"]).map(RawValue::get)
}
