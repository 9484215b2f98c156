//! The time of the change that led to a write: the annotation `endpoints.kubernetes.io/last-change-trigger-time`.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Pod, PodAddresses, Service};
use kcm_framework::api::{Fnv1a, ObjectKey, PartReader};
use parking_lot::Mutex;

/// The annotation of endpoints and endpoint slices.
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The times that the last reconcile of each service has seen: 16 bytes for each of its pods.
///
/// # Upstream
/// `TriggerTimeTracker`. For a service that is new to it, as after a restart, the change is its creation.
#[derive(Debug, Default)]
pub(crate) struct TriggerTimes(Mutex<HashMap<ObjectKey, SeenTimes>>);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SeenTimes {
    pub(super) service: Option<Timestamp>,
    /// Hash of the name and second of the last change of readiness of each pod, sorted.
    pub(super) pods: Box<[(u64, i64)]>,
}

impl TriggerTimes {
    /// Returns the time of the earliest change that the last call for this service has not seen.
    pub(crate) fn next(
        &self,
        service: &Service,
        pods: &[Arc<Pod>],
        addresses: PartReader<PodAddresses>,
    ) -> Option<Timestamp> {
        let changes = pods.iter().filter_map(|pod| {
            let changed = addresses.of(pod).readiness_changed?;
            Some((Fnv1a::new().part(pod.metadata.key.name()).value(), changed.as_second()))
        });
        let mut now_seen = SeenTimes { service: service.metadata.creation_timestamp, pods: changes.collect() };
        now_seen.pods.sort_unstable();
        let mut seen = self.0.lock();
        let Some(before) = seen.get_mut(&service.metadata.key) else {
            let created = now_seen.service;
            seen.insert(service.metadata.key.clone(), now_seen);
            return created;
        };
        let trigger = earliest_change(before, &now_seen);
        *before = now_seen;
        trigger
    }

    /// Forgets a service that was deleted.
    pub(crate) fn forget(&self, service: &ObjectKey) {
        self.0.lock().remove(service);
    }
}

/// Returns the earliest of the times that are later than the times that were seen of the same object.
pub(super) fn earliest_change(before: &SeenTimes, now: &SeenTimes) -> Option<Timestamp> {
    let is_later = |&&(name, second): &&(u64, i64)| {
        let at = before.pods.partition_point(|(known, _)| *known < name);
        before.pods.get(at).is_none_or(|(known, last)| *known != name || second > *last)
    };
    let pod = now.pods.iter().filter(is_later).map(|(_, second)| *second).min();
    let pod = pod.and_then(|second| Timestamp::from_second(second).ok());
    let service = now.service.filter(|created| before.service.is_none_or(|last| *created > last));
    pod.into_iter().chain(service).min()
}

/// The value of the annotation.
pub(crate) fn annotation_value(trigger: Timestamp) -> String {
    trigger.to_string()
}
