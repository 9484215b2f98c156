//! The controllers of volumes, their claims and their classes, a folder for each.
//!
//! A controller registers itself by being linked. Removing one is deleting its folder and its line here.

pub mod ephemeral_volume;
#[cfg_attr(not(test), expect(dead_code, reason = "the decisions of a controller that is not registered yet"))]
mod persistentvolume_attach_detach;
pub mod persistentvolume_binder;
pub mod persistentvolume_expander;
pub mod persistentvolume_protection;
pub mod persistentvolumeclaim_protection;
pub mod selinux_warning;
mod shared;
#[cfg(test)]
mod tests;
pub mod volumeattributesclass_protection;
