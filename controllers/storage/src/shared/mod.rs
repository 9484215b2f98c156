//! Decisions that several controllers of volumes share.

pub(crate) mod migration;
pub(crate) mod protection;
#[cfg_attr(not(test), expect(dead_code, reason = "no registered controller translates volumes yet"))]
pub(crate) mod translation;
