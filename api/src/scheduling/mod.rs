//! Which nodes a pod may run on: node selector, required node affinity, taints and tolerations.
//!
//! The rules of kube-scheduler that controllers repeat: the `DaemonSet` controller places pods with them, and the taint
//! controller evicts pods with them.
//!
//! # Upstream
//! `k8s.io/component-helpers/scheduling/corev1`.

mod node_affinity;
mod taint;
mod toleration;

#[cfg(test)]
mod tests;

pub use node_affinity::{NodeSelector, NodeSelectorTerm, RequiredNodeAffinity};
pub use taint::Taint;
pub use toleration::{ComparisonOperators, Toleration};
