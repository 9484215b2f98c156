//! What is served, told to clients: discovery and OpenAPI. Pure.

pub(crate) mod discovery;
pub(crate) mod openapi;
mod tag;
