//! The revision of the present template, and the pods that have it.

use kcm_framework::api::views::{DaemonSetView, Pod};

use crate::shared::revisions::POD_REVISION;

/// The annotation of a daemon set, and the label of its pods, with the generation of the template, which old releases
/// compared.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// The label with that generation.
pub(super) const POD_TEMPLATE_GENERATION: &str = "pod-template-generation";

/// What identifies the pods of the present template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CurrentRevision {
    /// The hash of the revision, which is a label of its pods.
    pub(super) hash: String,
    /// The generation of the template; absent if the set has none, or none that is a number.
    pub(super) template_generation: Option<i64>,
}

impl CurrentRevision {
    /// The revision of this hash.
    pub(super) fn new(set: &DaemonSetView, hash: impl Into<String>) -> Self {
        let generation = set.metadata.annotations.get(TEMPLATE_GENERATION);
        Self { hash: hash.into(), template_generation: generation.and_then(|text| text.parse().ok()) }
    }

    /// Whether the pod has the present template, by hash or by generation.
    ///
    /// # Upstream
    /// `util.IsPodUpdated`.
    pub(super) fn is_of(&self, pod: &Pod) -> bool {
        let of_generation = || {
            let generation = self.template_generation?.to_string();
            Some(pod.metadata.labels.get(POD_TEMPLATE_GENERATION)? == generation)
        };
        self.has_hash(pod) || of_generation().unwrap_or(false)
    }

    /// Whether the pod has the hash.
    pub(super) fn has_hash(&self, pod: &Pod) -> bool {
        !self.hash.is_empty() && pod.metadata.labels.get(POD_REVISION) == Some(self.hash.as_str())
    }
}
