//! The kinds of objects that keep a number of pods.

use kcm_api::views::ReplicaSetStatus;
use kcm_api::{Document, InvalidSelector, KnownView, Labels, Selector};

/// A kind of object that keeps a number of pods of one template: replica sets and replication controllers.
pub(crate) trait ReplicaOwner: KnownView {
    /// What an object of the kind is called in explanations and logs.
    const NOUN: &'static str;

    /// Whether the status has `terminatingReplicas`.
    const COUNTS_TERMINATING: bool;

    /// `spec.replicas`.
    fn replicas(&self) -> i32;

    /// `spec.minReadySeconds`.
    fn min_ready_seconds(&self) -> i32;

    /// `spec.selector`.
    fn selector(&self) -> &Result<Selector, InvalidSelector>;

    /// `spec.template.metadata.labels`.
    fn template_labels(&self) -> &Labels;

    /// `status`.
    fn status(&self) -> &ReplicaSetStatus;

    /// The whole object, which is updated with PUT.
    fn document(&self) -> &Document;
}
