//! The horizontal pod autoscaler.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod horizontal_pod_autoscaler;
