//! Parts of the tests of several controllers.

pub(crate) mod scenarios;
