//! Fixtures that the tests of several controllers share.

pub(crate) mod faults;
pub(crate) mod logs;
pub(crate) mod signing_requests;
