//! Decisions that several controllers of volumes share.

pub(crate) mod csi_driver;
pub(crate) mod metrics;
pub(crate) mod migration;
pub(crate) mod protection;
pub(crate) mod sources;
pub(crate) mod translation;
