//! The snapshot of an object and its pods, from the caches.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{InternedStr, POD_TEMPLATE_HASH, Selector};
use kcm_framework::informers::{Index, Informer};
use kcm_framework::ownership::{Dependents, Owner};

use super::owner::ReplicaOwner;
use super::rank::Occupancy;

/// The snapshot of one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed<V> {
    pub(super) owner: Arc<V>,
    /// The pods that the object controls, and the orphans of its namespace that it selects; in no order.
    pub(super) pods: Vec<Arc<Pod>>,
    /// The pods of related objects on each node; empty unless there are surplus pods.
    pub(super) occupancy: Occupancy,
}

/// The caches that the controller reads.
pub(super) struct Caches<V> {
    pods: Informer<Pod>,
    siblings: Dependents<V>,
    dependents: Dependents<Pod>,
    by_template: Index<Pod, TemplateKey>,
}

/// Namespace and `pod-template-hash`, by which every `ReplicaSet` of a Deployment selects.
type TemplateKey = (InternedStr, InternedStr);

fn template(pod: &Pod) -> Option<TemplateKey> {
    let hash = pod.metadata.labels.get_shared(POD_TEMPLATE_HASH)?;
    Some((pod.metadata.key.shared_namespace()?.clone(), hash.clone()))
}

impl<V: ReplicaOwner> Caches<V> {
    /// Adds the indexes that a snapshot needs.
    pub(super) fn new(owners: &Informer<V>, pods: Informer<Pod>) -> Self {
        let (siblings, dependents) = (Dependents::of(owners), Dependents::of(&pods));
        let by_template = pods.index("template", template);
        Self { pods, siblings, dependents, by_template }
    }

    /// Returns the snapshot of an object.
    pub(super) fn observe(&self, owner: &Arc<V>) -> Observed<V> {
        let pods = self.dependents.owned_or_orphaned(Owner::of(&**owner), owner.selector().as_ref().ok());
        // Counting is expensive, and only a deletion ranks pods by it.
        let candidates = pods.iter().filter(|pod| pod.is_active()).count();
        let surplus = i64::try_from(candidates).unwrap_or(i64::MAX) > i64::from(owner.replicas());
        let occupancy = if surplus { self.occupancy_around(owner) } else { Occupancy::default() };
        Observed { owner: Arc::clone(owner), pods, occupancy }
    }

    /// Counts the pods that objects of the same controller select, this one included.
    ///
    /// An object without a controller has no related ones, not even itself, as upstream.
    fn occupancy_around(&self, owner: &V) -> Occupancy {
        let meta = owner.meta();
        let (Some(controller), Some(namespace)) = (meta.controller(), meta.key.namespace()) else {
            return Occupancy::default();
        };
        // Owner references must not cross namespaces: those that do are ignored.
        let siblings = self.siblings.controlled_by(&controller.uid);
        let selectors: Vec<&Selector> = siblings
            .iter()
            .filter(|sibling| sibling.meta().key.namespace() == Some(namespace))
            .filter_map(|sibling| sibling.selector().as_ref().ok())
            .collect();
        let pods = self.selectable(namespace, &selectors);
        let related = |pod: &&Arc<Pod>| selectors.iter().any(|selector| selector.matches(&pod.metadata.labels));
        Occupancy::of(pods.iter().filter(related).map(|pod| &**pod))
    }

    /// The pods of the namespace that one of the selectors may match, each once.
    ///
    /// The index by template replaces a scan of the namespace, which took a fifth of the CPU of a rollout of 100 deployments
    /// of 50 pods in one namespace.
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
