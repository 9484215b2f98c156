//! From the caches to one snapshot of a replica set and its pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::views::{Pod, ReplicaSet, ReplicaSetView};
use kcm_api::{InternedStr, ObjectKey, POD_TEMPLATE_HASH, Selector};
use kcm_informers::{Index, Informer};

use super::rank::Occupancy;
use super::wiring::ReplicaSets;
use crate::shared::ownership::{Holder, Owner, by_holder};

/// A replica set and what bears on it, at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// The replica set.
    pub(super) owner: Arc<ReplicaSet>,
    /// Pods that it owns, and pods of its namespace that are nobody's and that it selects; in no order.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Where the pods of related replica sets are; empty unless there are more pods than asked for.
    pub(super) occupancy: Occupancy,
}

/// The caches that the controller reads.
#[derive(Clone)]
pub(super) struct Caches {
    /// Replica sets.
    pub(super) replica_sets: Informer<ReplicaSet>,
    /// Pods.
    pub(super) pods: Informer<Pod>,
    siblings: Index<ReplicaSet, Holder>,
    by_holder: Index<Pod, Holder>,
    by_template: Index<Pod, Template>,
}

/// Namespace and `pod-template-hash`, which every replica set of a deployment selects by.
type Template = (InternedStr, InternedStr);

fn template(pod: &Pod) -> Option<Template> {
    let hash = pod.metadata.labels.get_shared(POD_TEMPLATE_HASH)?;
    Some((pod.metadata.key.shared_namespace()?.clone(), hash.clone()))
}

impl Caches {
    /// Adds the indexes that observation needs.
    pub(super) fn new(replica_sets: Informer<ReplicaSet>, pods: Informer<Pod>) -> Self {
        let (siblings, by_holder) = (by_holder(&replica_sets), by_holder(&pods));
        let by_template = pods.index("template", template);
        Self { replica_sets, pods, siblings, by_holder, by_template }
    }

    /// The snapshot of one replica set; absent where there is none of that name.
    pub(super) fn observe(&self, key: &ObjectKey) -> Option<Observed> {
        let owner = self.replica_sets.get(key)?;
        let pods = self.pods_of(&owner);
        // Asked for the most expensive look only where its answer decides something.
        let candidates = pods.iter().filter(|pod| pod.is_active()).count();
        let surplus = i64::try_from(candidates).unwrap_or(i64::MAX) > i64::from(owner.replicas);
        let occupancy = if surplus { self.occupancy_around(&owner) } else { Occupancy::default() };
        Some(Observed { owner, pods, occupancy })
    }

    fn pods_of(&self, owner: &ReplicaSetView) -> Vec<Arc<Pod>> {
        let mut pods = self.by_holder.get(&Holder::Controller(owner.metadata.uid.clone()));
        pods.retain(|pod| Owner::of(owner).owns(&pod.metadata));
        if let (Some(namespace), Ok(selector)) = (owner.metadata.key.namespace(), &owner.selector) {
            let orphans = self.by_holder.get(&Holder::Nobody(namespace.into()));
            pods.extend(orphans.into_iter().filter(|pod| selector.matches(&pod.metadata.labels)));
        }
        pods
    }

    /// Counts the pods that replica sets of the same controller select, this one's included.
    ///
    /// A replica set without a controller has no relations, not even itself, as upstream.
    fn occupancy_around(&self, owner: &ReplicaSetView) -> Occupancy {
        let (Some(controller), Some(namespace)) = (owner.metadata.controller(), owner.metadata.key.namespace()) else {
            return Occupancy::default();
        };
        // An owner reference does not cross namespaces, so those elsewhere are somebody's mistake.
        let siblings = self.siblings.get(&Holder::Controller(controller.uid.clone()));
        let selectors: Vec<&Selector> = siblings
            .iter()
            .filter(|sibling| sibling.metadata.key.namespace() == Some(namespace))
            .filter_map(|sibling| sibling.selector.as_ref().ok())
            .collect();
        let pods = self.selectable(namespace, &selectors);
        let related = |pod: &&Arc<Pod>| selectors.iter().any(|selector| selector.matches(&pod.metadata.labels));
        Occupancy::of(pods.iter().filter(related).map(|pod| &**pod))
    }

    /// Every pod of the namespace that one of the selectors could select, once, and as few others as can be told.
    ///
    /// Looking through the namespace took a fifth of the CPU of rolling out 100 deployments of 50 pods in one.
    fn selectable(&self, namespace: &str, selectors: &[&Selector]) -> Vec<Arc<Pod>> {
        let templates: Option<BTreeSet<&InternedStr>> =
            selectors.iter().map(|selector| selector.required_value(POD_TEMPLATE_HASH)).collect();
        match templates {
            Some(hashes) => {
                let namespace = InternedStr::from(namespace);
                hashes.into_iter().flat_map(|hash| self.by_template.get(&(namespace.clone(), hash.clone()))).collect()
            }
            None => self.pods.in_namespace(namespace),
        }
    }
}

impl ReplicaSets for Informer<ReplicaSet> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        Informer::get(self, key)
    }

    fn in_namespace(&self, namespace: &str) -> Vec<Arc<ReplicaSet>> {
        Informer::in_namespace(self, namespace)
    }
}
