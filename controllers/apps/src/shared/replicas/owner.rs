//! The kinds of objects that keep a number of pods.

use kcm_framework::api::views::ReplicaSetStatus;
use kcm_framework::api::{Document, InvalidSelector, KnownView, Labels, Selector};

/// A kind of object that keeps a number of pods of one template: `ReplicaSets` and `ReplicationControllers`.
pub(crate) trait ReplicaOwner: KnownView {
    /// The name of the kind in explanations.
    const NOUN: &'static str;
    /// Whether the status has `terminatingReplicas`.
    const COUNTS_TERMINATING: bool;

    fn replicas(&self) -> i32;
    fn min_ready_seconds(&self) -> i32;
    fn selector(&self) -> &Result<Selector, InvalidSelector>;
    fn template_labels(&self) -> &Labels;
    fn status(&self) -> &ReplicaSetStatus;
    /// The whole object, which is updated with PUT.
    fn document(&self) -> &Document;
}

/// Implements [`ReplicaOwner`] for a kind; the views of both kinds have the same fields.
macro_rules! replica_owner {
    ($kind:ty, $noun:literal, counts_terminating: $counts_terminating:literal) => {
        impl $crate::shared::replicas::ReplicaOwner for $kind {
            const NOUN: &'static str = $noun;
            const COUNTS_TERMINATING: bool = $counts_terminating;

            fn replicas(&self) -> i32 {
                self.view.replicas
            }

            fn min_ready_seconds(&self) -> i32 {
                self.view.min_ready_seconds
            }

            fn selector(&self) -> &Result<kcm_framework::api::Selector, kcm_framework::api::InvalidSelector> {
                &self.view.selector
            }

            fn template_labels(&self) -> &kcm_framework::api::Labels {
                &self.view.template_labels
            }

            fn status(&self) -> &kcm_framework::api::views::ReplicaSetStatus {
                &self.view.status
            }

            fn document(&self) -> &kcm_framework::api::Document {
                &self.document
            }
        }
    };
}
pub(crate) use replica_owner;
