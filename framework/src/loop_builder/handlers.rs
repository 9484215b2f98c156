//! The event handlers of a loop, which enqueue keys.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::{Fnv1a, Resource, View};
use kcm_informers::{Cache, Change, HandlerOptions, Informer, Origin};
use kcm_workqueue::Queue;
use tokio::time::Instant;

use super::enqueue::Enqueue;
use crate::activity::{Activity, Runs};
use crate::explain::{ChangeKind, TriggerCause, Triggers};
use crate::queue_key::QueueKey;
use crate::reconcile::priority;

/// The queue of the event handlers, and the caches of the primary resource.
pub(super) struct Target<K> {
    pub(super) queue: Queue<K>,
    pub(super) triggers: Arc<Triggers<K>>,
    pub(super) primary: Arc<[Arc<dyn Cache>]>,
    pub(super) activity: Activity,
    pub(super) runs: Runs,
}

/// Adds an event handler of the informer whose cache has that position in the list of the loop.
pub(super) fn add_handler<K, V, I>(
    informer: &Informer<V>,
    cache: usize,
    options: HandlerOptions,
    target: &Target<K>,
    event_mapping: impl Fn(&Change<V>) -> I + Send + 'static,
) where
    K: QueueKey,
    V: View,
    I: IntoIterator<Item: Into<Enqueue<K>>>,
{
    let (queue, triggers, runs) = (target.queue.clone(), Arc::clone(&target.triggers), target.runs.clone());
    let registration = informer.add_event_handler(options, move |change, origin| {
        if !runs.get() {
            return;
        }
        let kind = match change {
            Change::Added(_) => ChangeKind::Added,
            Change::Updated { .. } => ChangeKind::Updated,
            Change::Undecodable { .. } => ChangeKind::Undecodable,
            Change::Deleted { .. } => ChangeKind::Deleted,
        };
        for enqueue in event_mapping(change) {
            let Enqueue { key, after } = enqueue.into();
            // Objects of the first list and of resyncs are many, and their cause is what is left without a record.
            if origin == Origin::Live {
                let due = (!after.is_zero()).then(|| Instant::now() + after);
                triggers.add(&key, TriggerCause::Event { cache, change: kind }, Some(change.key()), due);
            }
            if after.is_zero() {
                queue.add(key, priority(origin));
            } else {
                queue.add_after(key, after, priority(origin));
            }
        }
    });
    let informer = informer.clone();
    target.activity.add_handler(move || informer.notify_again(registration));
}

/// The time until the first resync of a handler, between half the period and the whole: all handlers of the manager have
/// one period, and would be resynced at the same moment.
pub(super) fn resync_phase(handler: &str, resource: &Resource, period: Duration) -> Duration {
    // The same in every process.
    let hash = Fnv1a::new().bytes(format!("{handler} {resource}").as_bytes()).value();
    let thousandths = u32::try_from((hash >> 32) % 1_000).unwrap_or(0);
    period / 2 + period / 2_000 * thousandths
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn handlers_are_resynced_at_different_times_of_the_second_half_of_the_period() {
        let period = Duration::from_hours(12);
        let controllers = ["deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob", "endpoint"];
        let resources = [
            Resource::namespaced("", "v1", "pods", "Pod"),
            Resource::namespaced("", "v1", "services", "Service"),
            Resource::namespaced("apps", "v1", "deployments", "Deployment"),
        ];
        let phases: BTreeSet<Duration> = controllers
            .iter()
            .flat_map(|name| {
                resources.iter().map(move |of| resync_phase(&format!("{name}-controller/{name}"), of, period))
            })
            .collect();
        assert_eq!(phases.len(), controllers.len() * resources.len());
        assert!(phases.iter().all(|phase| (period / 2..period).contains(phase)), "{phases:?}");
        let of = |name| resync_phase(name, &resources[0], period);
        assert_eq!(of("a"), of("a"), "the same in every process");
        let gaps: Vec<Duration> = phases.iter().zip(phases.iter().skip(1)).map(|(a, b)| b.saturating_sub(*a)).collect();
        assert!(gaps.iter().all(|gap| *gap < period / 6), "they are spread: {gaps:?}");
    }
}
