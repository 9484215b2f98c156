//! Shared parts of the tests of several controllers.

pub(crate) mod faults;
pub(crate) mod scenarios;
