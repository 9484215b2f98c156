//! Discovery and OpenAPI. Pure.

pub(crate) mod discovery;
mod group_version;
#[cfg(feature = "kubectl")]
mod openapi;
mod tag;
