//! Discovery and OpenAPI. Pure.

pub(crate) mod discovery;
pub(crate) mod document;
mod group_version;
#[cfg(feature = "kubectl")]
mod openapi;
mod tag;
