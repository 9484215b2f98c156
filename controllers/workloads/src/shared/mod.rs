//! What several controllers do in the same way.

pub(crate) mod adoption;
pub(crate) mod claim;
pub(crate) mod error;
pub(crate) mod ownership;
