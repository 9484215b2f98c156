//! What several controllers of workloads use, a folder for each subject.

pub(crate) mod pod_control;
pub(crate) mod replicas;
#[allow(dead_code, unused_imports, reason = "the controllers of stateful sets and daemon sets use it")]
pub(crate) mod revisions;
