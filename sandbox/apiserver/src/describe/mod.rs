//! Discovery and OpenAPI. Pure.

pub(crate) mod discovery;
pub(crate) mod openapi;
mod tag;
