//! Decisions that several controllers of volumes share.

pub(crate) mod protection;
