//! What the controllers of this area share.

pub(crate) mod adoption;
pub(crate) mod claim;
pub(crate) mod error;
pub(crate) mod ownership;
