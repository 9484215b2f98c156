//! The order of a reconcile of a rule: the numbers, the condition.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{InternedStr, ObjectKey};
use kcm_framework::informers::Lookup;
use kcm_framework::{ReconcileError, Session};

use super::apply::set_progress;
use super::event_mapping::consumers;
use super::plan::{Slices, Taints};
use super::reconcile::{Reconciler, STATUS_PERIOD};
use super::status::{Numbers, condition, needs_numbers};
use super::views::DeviceTaintRule;

impl Reconciler {
    pub(super) async fn reconcile_rule(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(rules) = &self.rules else { return Ok(()) };
        let rule = match rules.lookup(key) {
            Lookup::Found(rule) => rule,
            Lookup::Absent => {
                self.progress.lock().forget_rule(key.name());
                return Ok(());
            }
            Lookup::Undecodable(rule) => {
                session.requeue_when_decodable(&rules.cache(), &rule);
                return Ok(());
            }
        };
        if let Some(wait) = wait(&rule, session) {
            session.explain(|| "updates the status later: it was updated within the last ten seconds");
            session.requeue_after(wait);
            return Ok(());
        }
        let mut numbers = if needs_numbers(&rule) { self.numbers(&rule, session) } else { Numbers::default() };
        numbers.evicted = self.progress.lock().evicted_by(key.name(), &rule.metadata.uid);
        match condition(&rule, numbers, session.now()) {
            Some(condition) => {
                session.explain(|| format!("sets the condition of the rule to {}", condition.reason));
                set_progress(session, &rule, &condition).await?;
            }
            None => session.explain(|| "keeps the condition of the rule"),
        }
        Ok(())
    }

    /// Counts the devices and Pods of a rule as if it had the effect `NoExecute`.
    fn numbers(&self, rule: &DeviceTaintRule, session: &Session) -> Numbers {
        let mut numbers = Numbers::default();
        if !rule.taint.evicts() {
            let mut pools = BTreeSet::new();
            self.all_slices.for_each(|slice| {
                pools.insert((slice.driver.clone(), slice.pool.clone()));
            });
            for (driver, pool) in &pools {
                let slices = self.slices.newest(driver, pool);
                let devices = slices.iter().flat_map(|slice| &slice.devices);
                numbers.published +=
                    devices.filter(|device| rule.selects(driver, pool, &device.name)).map(|_| 1).sum::<u64>();
            }
        }
        let mut pods = BTreeSet::new();
        self.claims.for_each(|claim| {
            let results = self.devices.of(claim).results.iter();
            let selected = results.filter(|device| rule.selects(&device.driver, &device.pool, &device.device));
            let selected = selected.map(|_| 1).sum::<u64>();
            if selected > 0 {
                numbers.allocated += selected;
                pods.extend(consumers(claim, |group| self.pods_of_group(group)));
            }
        });
        let mut evicting = rule.clone();
        evicting.taint.effect = InternedStr::from("NoExecute");
        let alone = Taints { rules: vec![Arc::new(evicting)], slices: Slices::Of(Vec::new()) };
        let mut namespaces = BTreeSet::new();
        for pod in pods {
            let Some(pod) = self.pods.lookup(&pod).found() else { continue };
            if !pod.metadata.is_terminating() && self.plan(&pod, &alone, session).is_some() {
                numbers.pods += 1;
                namespaces.extend(pod.metadata.key.namespace().map(str::to_owned));
            }
        }
        numbers.namespaces = namespaces.len().try_into().unwrap_or(u64::MAX);
        numbers
    }

    pub(super) fn pods_of_group(&self, group: &ObjectKey) -> Vec<ObjectKey> {
        let pods = self.pods_by_group.as_ref().map(|by_group| by_group.get(group)).unwrap_or_default();
        pods.iter().map(|pod| pod.metadata.key.clone()).collect()
    }
}

/// The time until the status of the rule may be updated again. A new generation is shown at once.
fn wait(rule: &DeviceTaintRule, session: &Session) -> Option<Duration> {
    let present = rule.progress.as_ref().filter(|present| present.observed_generation == rule.metadata.generation)?;
    // A clock that was set back is no reason to wait for longer.
    let since = session.now().duration_since(present.last_transition_time?);
    let since = Duration::try_from(since).unwrap_or_default();
    STATUS_PERIOD.checked_sub(since).filter(|wait| !wait.is_zero())
}
