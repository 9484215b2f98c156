//! What the tests of several controllers share.

pub(crate) mod faults;
