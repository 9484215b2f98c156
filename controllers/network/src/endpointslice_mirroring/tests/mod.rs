//! Tables of the decisions, and whole endpoints on an API server in the process.

mod apply;
mod event_mapping;
mod plan;
