//! Code that several controllers of workloads use, a folder or file for each subject.

pub(crate) mod availability;
pub(crate) mod pod_control;
pub(crate) mod replicas;
pub(crate) mod revisions;
pub(crate) mod stale_syncs;
