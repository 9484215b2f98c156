//! Replenishment: enqueues the quotas that count objects of a kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use kcm_framework::api::views::{ChargedPod, DeviceClass, ResourceQuota};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::clock::Clock;
use kcm_framework::informers::Informer;
use kcm_framework::workqueue::{Priority, Queue};
use parking_lot::Mutex;

use super::evaluator::Evaluator;
use super::evaluator::resource_claims::DeviceClasses;
use super::event_mapping::{QueueName, queue_of};
use super::settings::Gates;

/// The quotas, and the queues that they enter.
pub(super) struct Quotas {
    pub(super) informer: Informer<ResourceQuota>,
    pub(super) primary: Queue<ObjectKey>,
    pub(super) priority: Queue<ObjectKey>,
    pub(super) gates: Gates,
    pub(super) pods: PartReader<ChargedPod>,
    pub(super) clock: Arc<dyn Clock>,
    /// `None` while `DeviceClasses` are not served, or do not count.
    pub(super) classes: Mutex<Option<Informer<DeviceClass>>>,
    /// Whether the loops of the controller run. While they do not, nothing is enqueued: they enqueue all quotas when they
    /// start.
    pub(super) runs: AtomicBool,
}

impl Quotas {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn device_classes(&self) -> DeviceClasses {
        let informer = self.classes.lock().clone();
        informer.map(|classes| DeviceClasses::of(&classes.list())).unwrap_or_default()
    }

    /// Enqueues the quotas of a namespace for which an evaluator counts.
    pub(super) fn replenish(&self, evaluator: &Evaluator, namespace: &str) {
        if !self.runs.load(Ordering::Acquire) {
            return;
        }
        let quotas = self.informer.in_namespace(namespace);
        if quotas.is_empty() {
            return;
        }
        let classes = self.device_classes();
        for quota in quotas.iter().filter(|quota| self.has_constraint_of(quota, evaluator, &classes)) {
            self.primary.add(quota.metadata.key.clone(), Priority::Live);
        }
    }

    /// Enqueues all quotas for which an evaluator counts, after the sync of its kind.
    pub(super) fn enqueue_all_of(&self, evaluator: &Evaluator) {
        let classes = self.device_classes();
        for quota in self.informer.list() {
            if self.has_constraint_of(&quota, evaluator, &classes) {
                let is_counted = |name: &str| evaluator.evaluates(name, &classes, self.gates);
                let queue = match queue_of(&quota, is_counted) {
                    QueueName::Primary => &self.primary,
                    QueueName::Priority => &self.priority,
                };
                queue.add(quota.metadata.key.clone(), Priority::Initial);
            }
        }
    }

    /// Reads the limits of the spec, because the first usage of a quota may be out of date when it is written.
    fn has_constraint_of(&self, quota: &ResourceQuota, evaluator: &Evaluator, classes: &DeviceClasses) -> bool {
        quota.hard.names().any(|name| evaluator.evaluates(name, classes, self.gates))
    }
}
