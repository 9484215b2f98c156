//! The controllers of pods, and how many replicas each of them should have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_framework::api::views::{Deployment, Pod, ReplicaSet, ReplicationController, StatefulSet};
use kcm_framework::api::{KnownView, ObjectKey, OwnerReference, Uid};
use kcm_framework::informers::Informer;
use kcm_framework::{ScaleClient, ScaleError};

/// The number of pods that a controller should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ControllerScale {
    /// The uid of the controller: of the deployment, for a replica set that a deployment controls.
    pub(super) uid: Uid,
    /// `spec.replicas`.
    pub(super) replicas: i32,
}

/// The controllers of pods.
#[derive(Debug, Default)]
pub(super) struct Controllers<'a> {
    /// Each controller once, with the first of its pods.
    pub(super) references: Vec<(&'a OwnerReference, &'a ObjectKey)>,
    /// Whether any pod has no controller.
    pub(super) has_unmanaged_pods: bool,
}

impl<'a> Controllers<'a> {
    /// The controllers of these pods, in their order.
    pub(super) fn of(pods: &'a [Arc<Pod>]) -> Self {
        let mut controllers = Self::default();
        let mut seen = BTreeSet::new();
        for pod in pods {
            match pod.metadata.controller() {
                None => controllers.has_unmanaged_pods = true,
                Some(reference) if seen.insert(&reference.uid) => {
                    controllers.references.push((reference, &pod.metadata.key));
                }
                Some(_) => {}
            }
        }
        controllers
    }
}

/// The caches of the controllers that are known, and the client for the scales of others.
pub(super) struct Scales {
    pub(super) replication_controllers: Informer<ReplicationController>,
    pub(super) replica_sets: Informer<ReplicaSet>,
    pub(super) deployments: Informer<Deployment>,
    pub(super) stateful_sets: Informer<StatefulSet>,
    pub(super) client: ScaleClient,
}

/// A kind of controllers that has a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachedKind {
    ReplicationController,
    /// Of a deployment, or by itself.
    ReplicaSet,
    StatefulSet,
}

impl CachedKind {
    /// The kind of a controller, in whichever version it is named.
    pub(super) fn of(reference: &OwnerReference) -> Option<Self> {
        match &*reference.kind {
            "ReplicationController" if group_of(reference).is_empty() => Some(Self::ReplicationController),
            "ReplicaSet" if is_of_workloads(reference) => Some(Self::ReplicaSet),
            "StatefulSet" if group_of(reference) == "apps" => Some(Self::StatefulSet),
            _ => None,
        }
    }
}

fn group_of(reference: &OwnerReference) -> &str {
    reference.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether a controller is of the groups that replica sets and deployments are or were in.
fn is_of_workloads(reference: &OwnerReference) -> bool {
    matches!(group_of(reference), "apps" | "extensions")
}

/// How many pods the controllers should have is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScalesError {
    /// The controller of a pod does not exist, or was recreated.
    #[error("found no controllers for pod {pod:?}")]
    NoController {
        /// The name of the pod.
        pod: String,
    },
    /// The scale could not be read.
    #[error(transparent)]
    Scale(#[from] ScaleError),
}

impl ScalesError {
    /// Returns `true` if the API server has answered that there is no such controller or scale.
    pub(super) const fn lasts(&self) -> bool {
        match self {
            Self::NoController { .. } => true,
            Self::Scale(error) => matches!(error, ScaleError::NoKindMatch { .. } | ScaleError::NotScalable { .. }),
        }
    }
}

impl Scales {
    /// The replicas of the controllers of pods, by the uid of the controller.
    pub(super) async fn of(&self, controllers: &Controllers<'_>) -> Result<BTreeMap<Uid, i32>, ScalesError> {
        let mut scales = BTreeMap::new();
        for (reference, pod) in &controllers.references {
            let namespace = pod.namespace().unwrap_or_default();
            let scale = match self.cached(reference, namespace) {
                Some(scale) => Some(scale),
                None => self.read(reference, namespace).await?,
            };
            let no_controller = || ScalesError::NoController { pod: pod.name().to_owned() };
            let ControllerScale { uid, replicas } = scale.ok_or_else(no_controller)?;
            scales.insert(uid, replicas);
        }
        Ok(scales)
    }

    /// The scale of a controller of a kind that has a cache.
    ///
    /// A replica set counts as its deployment. One whose deployment is not in the cache, or of another group, is read live,
    /// by itself.
    fn cached(&self, reference: &OwnerReference, namespace: &str) -> Option<ControllerScale> {
        match CachedKind::of(reference)? {
            CachedKind::ReplicationController => {
                let found = find(&self.replication_controllers, reference, namespace)?;
                Some(scale(&found.metadata.uid, found.replicas))
            }
            CachedKind::ReplicaSet => {
                let replica_set = find(&self.replica_sets, reference, namespace)?;
                match replica_set.metadata.controller().filter(|controller| &*controller.kind == "Deployment") {
                    None => Some(scale(&replica_set.metadata.uid, replica_set.replicas)),
                    Some(controller) if is_of_workloads(controller) => {
                        let found = find(&self.deployments, controller, namespace)?;
                        Some(scale(&found.metadata.uid, found.replicas))
                    }
                    Some(_) => None,
                }
            }
            CachedKind::StatefulSet => {
                let found = find(&self.stateful_sets, reference, namespace)?;
                Some(scale(&found.metadata.uid, found.replicas))
            }
        }
    }

    /// The scale of a controller of any kind, read live; absent where it does not exist, or was recreated.
    async fn read(&self, reference: &OwnerReference, namespace: &str) -> Result<Option<ControllerScale>, ScaleError> {
        let key = ObjectKey::namespaced(namespace, &*reference.name);
        match self.client.get(&reference.api_version, &reference.kind, &key).await {
            Ok((_, scale)) if scale.uid == reference.uid => {
                Ok(Some(ControllerScale { uid: scale.uid, replicas: scale.replicas }))
            }
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn scale(uid: &Uid, replicas: i32) -> ControllerScale {
    ControllerScale { uid: uid.clone(), replicas }
}

/// The object of a reference, unless it was recreated.
fn find<V: KnownView>(objects: &Informer<V>, reference: &OwnerReference, namespace: &str) -> Option<Arc<V>> {
    let found = objects.get(&ObjectKey::namespaced(namespace, &*reference.name))?;
    (found.meta().uid == reference.uid).then_some(found)
}
