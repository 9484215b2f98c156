//! What several controllers of workloads use, a folder for each subject.

pub(crate) mod pod_control;
pub(crate) mod replicas;
pub(crate) mod revisions;
pub(crate) mod stale_syncs;
