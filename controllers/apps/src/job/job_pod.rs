//! A pod as its job sees it.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{JobView, Pod, PodPhase, PodReplacementPolicy, PodTermination};
use kcm_framework::api::{PartReader, Uid};

/// The finalizer that keeps a pod until its job has counted it.
pub(super) const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// The annotation and the label with the completion index of a pod.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The annotation with the number of failures of the index before this pod.
pub(super) const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";

/// The annotation with the number of failures of the index before this pod that are not counted.
pub(super) const INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// A pod of a job.
#[derive(Debug, Clone)]
pub(super) struct JobPod {
    /// The pod.
    pub(super) pod: Arc<Pod>,
    /// Whether it has the finalizer: it is not yet counted.
    pub(super) is_tracked: bool,
    /// Its completion index; absent without a valid annotation.
    pub(super) index: Option<i32>,
    terminations: PartReader<PodTermination>,
}

impl JobPod {
    /// A pod of the cache. One that was adopted just now has the finalizer too.
    pub(super) fn new(pod: Arc<Pod>, is_adopted: bool, terminations: PartReader<PodTermination>) -> Self {
        let is_tracked = is_adopted || is_tracked(&pod);
        let index = pod.metadata.annotations.get(COMPLETION_INDEX);
        let index = index.and_then(|index| index.parse().ok()).filter(|index| *index >= 0);
        Self { pod, is_tracked, index, terminations }
    }

    /// Its uid.
    pub(super) fn uid(&self) -> &Uid {
        &self.pod.metadata.uid
    }

    /// How it ended, or is ending.
    pub(super) fn termination(&self) -> &PodTermination {
        self.terminations.of(&self.pod)
    }

    /// When it finished, for the back-off; else when it was created.
    pub(super) fn finished_at(&self) -> Timestamp {
        let finished_at = self.termination().finished_at.or(self.pod.metadata.creation_timestamp);
        finished_at.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Whether it succeeded.
    pub(super) fn has_succeeded(&self) -> bool {
        self.pod.phase == PodPhase::Succeeded
    }

    /// Whether it counts as failed. A terminating pod does, unless the job replaces failed ones only: without a node, it
    /// never becomes `Failed`.
    pub(super) fn has_failed(&self, job: &JobView) -> bool {
        self.pod.phase == PodPhase::Failed
            || !replaces_failed_only(job) && self.pod.metadata.is_terminating() && !self.has_succeeded()
    }

    /// Its completion index, where that is below the completions of an indexed job.
    pub(super) fn valid_index(&self, job: &JobView) -> Option<i32> {
        self.index.filter(|index| *index < job.completions.unwrap_or(0))
    }

    /// Whether it takes part in counting: in an indexed job only with a valid index.
    pub(super) fn is_countable(&self, job: &JobView) -> bool {
        !job.is_indexed() || self.valid_index(job).is_some()
    }

    /// How many failures of its index came before it and were counted; 0 where the annotation is missing or malformed.
    pub(super) fn index_failures(&self) -> i32 {
        self.count(INDEX_FAILURE_COUNT)
    }

    /// How many failures of its index came before it and were not counted.
    pub(super) fn ignored_index_failures(&self) -> i32 {
        self.count(INDEX_IGNORED_FAILURE_COUNT)
    }

    /// How many failures of its index came before it.
    pub(super) fn all_index_failures(&self) -> i32 {
        self.index_failures().saturating_add(self.ignored_index_failures())
    }

    fn count(&self, annotation: &str) -> i32 {
        let count = self.pod.metadata.annotations.get(annotation).and_then(|count| count.parse().ok());
        count.filter(|count| *count >= 0).unwrap_or(0)
    }

    /// The rank for deletion; the lowest is deleted first, so that pods go in the earliest stage of their life.
    ///
    /// # Upstream
    /// `controller.ActivePods`; the uid decides last, so that the result does not depend on the order of the cache.
    pub(super) fn deletion_rank(&self) -> impl Ord + use<'_> {
        let pod = &*self.pod;
        let phase = match pod.phase {
            PodPhase::Running => 2,
            PodPhase::Unknown => 1,
            // Upstream ranks unknown phases as pending.
            PodPhase::Pending | PodPhase::Succeeded | PodPhase::Failed | PodPhase::Other | _ => 0,
        };
        (
            (pod.node_name.is_some(), phase, pod.is_ready()),
            // Pods without a time go first, then the latest.
            pod.ready_since().map(Reverse),
            (Reverse(pod.restarts), Reverse(pod.sidecar_restarts)),
            pod.metadata.creation_timestamp.map(Reverse),
            self.uid(),
        )
    }
}

/// Whether the pod has the finalizer of jobs.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().any(|finalizer| finalizer == TRACKING_FINALIZER)
}

/// Whether the job replaces pods only once they have failed, and not while they are terminating.
pub(super) fn replaces_failed_only(job: &JobView) -> bool {
    job.pod_replacement_policy == PodReplacementPolicy::Failed
}
