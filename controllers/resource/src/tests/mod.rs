//! Fixtures that the tests of several controllers share.
