//! The last minutes of each queue, within a bound. Pure.

use std::collections::{BTreeMap, VecDeque};

use kcm_framework::explain::QueueStatus;
use serde_json::{Value, json};

/// Number of samples of a queue that are kept.
const SAMPLES: usize = 200;

/// Largest number of queues with samples: twice the number of queues of all upstream's controllers. Further queues have
/// no chart.
const MOST_QUEUES: usize = 128;

/// The counts of one queue at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sample {
    /// Keys that wait for a worker.
    ready: u32,
    /// Keys that are processing or wait for their writes.
    active: u32,
    /// Keys whose last reconcile failed.
    failing: u32,
}

impl Sample {
    fn of(queue: &QueueStatus) -> Self {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            ready: count(queue.depth),
            active: count(queue.processing_count.saturating_add(queue.waiting_for_writes_count)),
            failing: count(queue.failing_count),
        }
    }
}

/// The last samples of each queue, the oldest first: 300 KiB at most, as `docs/debug.md` says.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By controller and queue.
    queues: BTreeMap<(String, String), VecDeque<Sample>>,
    /// The number of the last sample, from 1.
    tick: u64,
}

impl History {
    /// Adds a sample of each queue, and forgets queues that no longer exist.
    pub(super) fn add(&mut self, queues: &[QueueStatus]) {
        self.tick += 1;
        self.queues.retain(|(controller, name), _| {
            queues.iter().any(|queue| queue.controller == *controller && queue.name == *name)
        });
        for queue in queues {
            let key = (queue.controller.clone(), queue.name.clone());
            if self.queues.len() >= MOST_QUEUES && !self.queues.contains_key(&key) {
                continue;
            }
            let samples = self.queues.entry(key).or_insert_with(|| VecDeque::with_capacity(SAMPLES));
            if samples.len() == SAMPLES {
                samples.pop_front();
            }
            samples.push_back(Sample::of(queue));
        }
    }

    /// The number of the last sample.
    pub(super) const fn tick(&self) -> u64 {
        self.tick
    }

    /// All samples, as the page reads them.
    pub(super) fn to_json(&self, interval_seconds: f64) -> Value {
        let column =
            |samples: &VecDeque<Sample>, count: fn(&Sample) -> u32| -> Vec<u32> { samples.iter().map(count).collect() };
        let queues = self.queues.iter().map(|((controller, name), samples)| {
            json!({
                "controller": controller,
                "name": name,
                "ready": column(samples, |sample| sample.ready),
                "active": column(samples, |sample| sample.active),
                "failing": column(samples, |sample| sample.failing),
            })
        });
        let queues: Vec<Value> = queues.collect();
        json!({ "tick": self.tick, "intervalSeconds": interval_seconds, "most": SAMPLES, "queues": queues })
    }

    /// The memory that the samples take, in bytes.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.queues.values().map(|samples| samples.capacity() * size_of::<Sample>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, depth: usize) -> QueueStatus {
        let status = json!({
            "controller": "deployment-controller", "name": name, "depth": depth, "processingCount": 2,
            "waitingForWritesCount": 3, "failingCount": 1,
        });
        serde_json::from_value(status).expect("it is the status of a queue")
    }

    #[test]
    fn the_last_samples_of_each_queue_are_kept_in_order() {
        let mut history = History::default();
        for depth in 0..=SAMPLES {
            history.add(&[queue("deployment", depth)]);
        }
        let shown = history.to_json(3.0);
        let ready: Vec<u64> = (1..=SAMPLES as u64).collect();
        assert_eq!((&shown["tick"], &shown["queues"][0]["ready"]), (&json!(SAMPLES + 1), &json!(ready)));
        assert_eq!((&shown["queues"][0]["active"][0], &shown["queues"][0]["failing"][0]), (&json!(5), &json!(1)));
    }

    #[test]
    fn a_queue_that_is_gone_is_forgotten() {
        let mut history = History::default();
        history.add(&[queue("deployment", 1), queue("other", 1)]);
        history.add(&[queue("deployment", 2)]);
        let shown = history.to_json(3.0);
        assert_eq!(shown["queues"].as_array().map(Vec::len), Some(1));
        assert_eq!(shown["queues"][0]["ready"], json!([1, 2]));
    }

    #[test]
    fn the_samples_take_the_memory_that_is_stated_and_no_more() {
        let mut history = History::default();
        let queues: Vec<QueueStatus> = (0..MOST_QUEUES + 10).map(|at| queue(&format!("{at:03}"), at)).collect();
        for _ in 0..=SAMPLES {
            history.add(&queues);
        }
        assert_eq!(history.bytes(), 300 * 1024);
        assert!(include_str!("../../../docs/debug.md").contains("take 300 KiB at most"), "the page states it");
    }
}
