//! The plan of a reconcile as data: its input, its phases and their steps, and what it waits for.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::PartReader;
use kcm_framework::api::views::{Pod, PodVolumes, StatefulSet};

use super::claim_work::ClaimWork;
use super::gates::Gates;
use super::observe::ClaimLister;
use super::revisions::Revisions;

/// What a plan is made from.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// The stateful set.
    pub(super) set: &'a StatefulSet,
    /// Its pods.
    pub(super) pods: &'a [Arc<Pod>],
    /// Its revisions.
    pub(super) revisions: &'a Revisions,
    /// The claims of its namespace.
    pub(super) claims: &'a dyn ClaimLister,
    /// Reads the volumes of pods.
    pub(super) volumes: PartReader<PodVolumes>,
    /// The feature gates.
    pub(super) gates: Gates,
    /// The time.
    pub(super) now: Timestamp,
}

/// The plan of one reconcile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The phases, in order.
    pub(super) phases: Vec<Phase>,
    /// The pods that the status counts.
    pub(super) counted: Vec<Arc<Pod>>,
    /// The state of a recreation; `None` for other strategies and if it is complete.
    pub(super) recreation: Option<Recreation>,
    /// What has to happen before the stateful set can go on; absent if nothing has.
    pub(super) wait: Option<Wait>,
    /// The number of unavailable pods in the range of ordinals, and how many may be; absent unless the gate
    /// `MaxUnavailableStatefulSet` is on and the rollout was planned.
    pub(super) unavailable: Option<usize>,
}

/// The state of a recreation that is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recreation {
    /// Pods of earlier revisions exist.
    Deleting,
    /// Pods of the update revision are missing or not ready.
    Creating,
}

/// The steps of one phase.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phase {
    /// Whether the steps are carried out one after the other.
    pub(super) in_order: bool,
    /// The steps of each pod. Pods without steps take their place in the batches, as upstream.
    pub(super) pods: Vec<Vec<Step>>,
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Create the missing claims of a pod, and the pod.
    Create {
        /// The ordinal of the pod.
        ordinal: i64,
        /// The revision that it is created from.
        revision: Which,
        /// Its claims.
        claims: ClaimWork,
    },
    /// Create the missing claims of a pending pod.
    CreateClaims {
        /// The pod.
        pod: Arc<Pod>,
        /// Its ordinal.
        ordinal: i64,
        /// Its claims.
        claims: ClaimWork,
    },
    /// Repair the identity of a pod, its volumes and the owners of its claims.
    Update {
        /// The pod.
        pod: Arc<Pod>,
        /// Its ordinal.
        ordinal: i64,
        /// Whether its labels lack its identity.
        labels: bool,
        /// The claim templates whose volumes it lacks. The API server rejects new volumes of a pod.
        volumes: Vec<usize>,
        /// Its claims.
        claims: ClaimWork,
    },
    /// Repair the owners of the claims of a surplus pod.
    UpdateClaims {
        /// The pod.
        pod: Arc<Pod>,
        /// Its ordinal.
        ordinal: i64,
        /// Its claims.
        claims: ClaimWork,
    },
    /// Delete a pod.
    Delete {
        /// The pod.
        pod: Arc<Pod>,
        /// Why.
        reason: Deletion,
    },
}

/// One of the revisions of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// That of the pods below the partition.
    Current,
    /// That of the template.
    Update,
}

/// Why a pod is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    /// All its containers have ended: it is created again.
    Finished,
    /// Its ordinal is not in the range.
    Surplus,
    /// It has another revision.
    Outdated,
}

/// What a stateful set waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// The stateful set is being deleted.
    SetTerminating,
    /// A pod that was just created, or that is being deleted after it finished.
    Created {
        /// The name of the pod.
        pod: String,
    },
    /// A pod that is being deleted.
    Terminating {
        /// The name of the pod.
        pod: String,
    },
    /// A pod that does not run or is not ready.
    NotReady {
        /// The name of the pod.
        pod: String,
    },
    /// A pod that has not been ready for `minReadySeconds`.
    NotAvailable {
        /// The name of the pod.
        pod: String,
    },
    /// A claim of an earlier pod of that name, which is deleted with it.
    StaleClaim {
        /// The name of the pod.
        pod: String,
    },
    /// So many pods of the range that are not available, which is as many as may be.
    Unavailable {
        /// How many.
        pods: usize,
    },
    /// Pods of earlier revisions, which are deleted before a pod is created.
    Recreation {
        /// Number of these pods.
        pods: usize,
    },
    /// A pod that this plan deletes.
    Deleted {
        /// The name of the pod.
        pod: String,
    },
}

/// The pod of each ordinal in the range, from the lowest; absent where it is missing.
pub(super) type Replicas = Vec<(i64, Option<Arc<Pod>>)>;
