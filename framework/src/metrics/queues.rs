//! The metrics of work queues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kcm_workqueue::UnfinishedWork;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

// As upstream: ten nanoseconds to ten seconds, by tens. Two of its bounds are products that are not quite powers of ten.
const SECONDS: [f64; 10] =
    [1e-8, 1e-7, 1e-6, 9.999_999_999_999_999e-6, 9.999_999_999_999_999e-5, 1e-3, 1e-2, 0.1, 1.0, 10.0];

type Seconds = Gauge<f64, AtomicU64>;
type UnfinishedWorkFn = Box<dyn Fn() -> Option<UnfinishedWork> + Send + Sync>;

/// The metrics of all queues, by the label `name`.
///
/// # Upstream
/// `k8s.io/component-base/metrics/prometheus/workqueue`.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    retries: Family<Name, Counter>,
    queued: Family<Name, Histogram>,
    worked: Family<Name, Histogram>,
    unfinished: Family<Name, Seconds>,
    longest: Family<Name, Seconds>,
    longest_waits: Arc<Mutex<BTreeMap<Name, Arc<AtomicU64>>>>,
    on_scrape: Arc<Mutex<BTreeMap<Name, UnfinishedWorkFn>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Name {
    name: String,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        let histogram = || Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        Self {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queued: histogram(),
            worked: histogram(),
            unfinished: Family::default(),
            longest: Family::default(),
            longest_waits: Arc::default(),
            on_scrape: Arc::default(),
        }
    }
}

impl QueueMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        // The encoder adds `_total` to the names of counters.
        registry.register("workqueue_depth", "[BETA] Current depth of workqueue", self.depth.clone());
        registry.register("workqueue_adds", "[BETA] Total number of adds handled by workqueue", self.adds.clone());
        registry.register(
            "workqueue_retries",
            "[BETA] Total number of retries handled by workqueue",
            self.retries.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "[BETA] How long in seconds a key waits in workqueue before a worker takes it",
            self.queued.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "[BETA] How long in seconds processing a key of workqueue takes",
            self.worked.clone(),
        );
        registry.register(
            "workqueue_unfinished_work_seconds",
            "[BETA] Seconds of work in progress that is not finished, summed over the workers",
            self.unfinished.clone(),
        );
        registry.register(
            "workqueue_longest_running_processor_seconds",
            "[BETA] For how many seconds the longest running worker has had its key",
            self.longest.clone(),
        );
    }

    /// The metrics of the queue `name`.
    pub(crate) fn of(&self, name: &str) -> Arc<dyn kcm_workqueue::Metrics> {
        let name = Name { name: name.to_owned() };
        Arc::new(OneQueue {
            depth: self.depth.get_or_create(&name).clone(),
            ready: AtomicI64::new(0),
            adds: self.adds.get_or_create(&name).clone(),
            retries: self.retries.get_or_create(&name).clone(),
            queued: self.queued.get_or_create(&name).clone(),
            worked: self.worked.get_or_create(&name).clone(),
            longest_wait: Arc::clone(self.longest_waits.lock().entry(name).or_default()),
        })
    }

    /// Reads the unfinished work of the queue `name` at each scrape, until that is `None`; replaces an earlier queue of
    /// that name.
    pub(crate) fn on_scrape(&self, name: &str, read: impl Fn() -> Option<UnfinishedWork> + Send + Sync + 'static) {
        self.on_scrape.lock().insert(Name { name: name.to_owned() }, Box::new(read));
    }

    /// The longest that a key has waited for a worker so far, by the name of the queue.
    pub(super) fn longest_waits(&self) -> Vec<(String, Duration)> {
        let waits = self.longest_waits.lock();
        let waited = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        waits.iter().map(|(queue, nanos)| (queue.name.clone(), waited(nanos))).collect()
    }

    pub(super) fn refresh(&self) {
        self.on_scrape.lock().retain(|name, read| {
            let work = read();
            let (total, longest) = work.as_ref().map_or_else(Default::default, |work| (work.total, work.longest));
            self.unfinished.get_or_create(name).set(total.as_secs_f64());
            self.longest.get_or_create(name).set(longest.as_secs_f64());
            work.is_some()
        });
    }
}

struct OneQueue {
    depth: Gauge,
    /// The share of this queue in the depth: another queue of the same name may have replaced it.
    ready: AtomicI64,
    adds: Counter,
    retries: Counter,
    queued: Histogram,
    worked: Histogram,
    /// In nanoseconds; the histogram's last bucket knows no more than its bound.
    longest_wait: Arc<AtomicU64>,
}

impl kcm_workqueue::Metrics for OneQueue {
    fn added(&self, keys: u64) {
        self.adds.inc_by(keys);
        let keys = i64::try_from(keys).unwrap_or(i64::MAX);
        self.depth.inc_by(keys);
        self.ready.fetch_add(keys, Ordering::Relaxed);
    }

    fn taken(&self, waited: Duration) {
        self.depth.dec();
        self.ready.fetch_sub(1, Ordering::Relaxed);
        self.queued.observe(waited.as_secs_f64());
        self.longest_wait.fetch_max(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn dropped(&self, keys: u64) {
        let keys = i64::try_from(keys).unwrap_or(i64::MAX);
        self.depth.dec_by(keys);
        self.ready.fetch_sub(keys, Ordering::Relaxed);
    }

    fn finished(&self, worked: Duration) {
        self.worked.observe(worked.as_secs_f64());
    }

    fn retried(&self) {
        self.retries.inc();
    }
}

impl Drop for OneQueue {
    fn drop(&mut self) {
        // The keys of a queue whose controller has stopped wait no more.
        self.depth.dec_by(*self.ready.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_of_each_queue_is_remembered() {
        let metrics = QueueMetrics::default();
        let seconds = Duration::from_secs;
        for (name, waits) in [("a", [2, 1]), ("b", [0, 3])] {
            let queue = metrics.of(name);
            for waited in waits {
                queue.taken(seconds(waited));
            }
        }
        // A queue that is created again, as after a failure of its loop, keeps its longest wait.
        metrics.of("a").taken(seconds(1));
        assert_eq!(metrics.longest_waits(), [("a".to_owned(), seconds(2)), ("b".to_owned(), seconds(3))]);
    }
}
