//! Decisions that several controllers of volumes share.

pub(crate) mod metrics;
pub(crate) mod migration;
pub(crate) mod protection;
pub(crate) mod translation;
