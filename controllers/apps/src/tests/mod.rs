//! A cluster and fixtures for the tests of all controllers.

pub(crate) mod cluster;
pub(crate) mod fixtures;
pub(crate) mod invariants;
pub(crate) mod scenarios;
