//! The reconcile of a pod: the volumes that it needs.

use std::collections::BTreeSet;

use kcm_framework::Session;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Pod;

use super::events::{PodEvent, PodName, failed};
use super::flex::Flex;
use super::state::State;
use super::volume::FlexVolume;
use super::world::World;

/// Follows the pods into the desired state.
#[derive(Clone, Copy)]
pub(super) struct Pods<'a> {
    pub(super) world: &'a World,
    pub(super) state: &'a State,
    pub(super) flex: &'a Flex,
}

impl Pods<'_> {
    /// Brings the desired state up to date with a pod. Returns the volumes that are needed on other nodes than before.
    pub(super) fn follow(self, key: &ObjectKey, session: &Session) -> BTreeSet<String> {
        let known = self.state.desired.lock().uid(key);
        let pod = self.world.pods.get(key);
        let mut changed = BTreeSet::new();
        let is_other = |pod: &Pod| known.as_ref().is_some_and(|uid| *uid != pod.metadata.uid);
        let is_over = pod.as_ref().is_none_or(|pod| self.world.parts.needs_volumes_on(pod).is_none());
        if let Some(uid) = known.as_ref().filter(|_| is_over || pod.as_ref().is_some_and(|pod| is_other(pod))) {
            changed.extend(self.state.desired.lock().remove(uid));
        }
        if let Some(pod) = pod {
            changed.extend(self.add(&pod, session));
        }
        session.explain(|| match changed.len() {
            0 => "the pod needs the same volumes as before".to_owned(),
            number => format!("the pod begins or ceases to need {number} volumes"),
        });
        changed
    }

    /// Adds the volumes that a pod needs, and removes volumes whose driver needs no attachments any more.
    pub(super) fn add(self, pod: &Pod, session: &Session) -> BTreeSet<String> {
        let Some(node) = self.world.parts.needs_volumes_on(pod) else { return BTreeSet::new() };
        let found = self.world.volumes_of(pod);
        for reason in &found.not_attached {
            session.explain(|| format!("does not attach a volume: {reason}"));
        }
        for volume in &found.flex {
            self.report_flex(pod, volume, session);
        }
        let metadata = &pod.metadata;
        let name = PodName {
            namespace: metadata.key.namespace().unwrap_or_default().to_owned(),
            name: metadata.key.name().to_owned(),
        };
        let needed: Vec<String> = self.state.desired.lock().on_node(node);
        let unattached: BTreeSet<String> =
            needed.into_iter().filter(|volume| !self.world.is_attached_by_controller(volume)).collect();
        let mut desired = self.state.desired.lock();
        let mut changed = desired.add(&metadata.uid, &name, node, found.attachable);
        if !unattached.is_empty() {
            changed.extend(desired.retain(&metadata.uid, |volume| !unattached.contains(volume)));
        }
        changed
    }

    /// Tells a pod once that nobody attaches its flex volume.
    fn report_flex(self, pod: &Pod, volume: &FlexVolume, session: &Session) {
        if !self.flex.is_new(&pod.metadata.uid, volume) {
            return;
        }
        let error = format!(
            "flex volume driver {} attaches in the controller manager, which this manager does not support",
            volume.driver
        );
        tracing::warn!(pod = %pod.metadata.key, driver = volume.driver, "Cannot attach a flex volume");
        session.record(pod, &PodEvent::Failed(failed(&volume.name, &error)));
    }
}
