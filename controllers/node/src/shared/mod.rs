//! Parts that several controllers of this area share.

mod pods_by_node;
mod settings;
mod watching;

pub(crate) use pods_by_node::PodsByNode;
pub(crate) use settings::{LIFECYCLE, MONITOR_GRACE_PERIOD};
pub(crate) use watching::Watching;

/// The taint of a Node whose condition `Ready` is false.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The taint of a Node whose condition `Ready` is unknown.
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
