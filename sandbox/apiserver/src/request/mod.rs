//! Requests: target, parameters, form of the response, field manager and time. Pure.

mod field_manager;
mod form;
mod list_options;
mod query;
mod route;
mod target;
mod write;

pub(crate) use field_manager::{FieldManager, manager_of};
pub(crate) use form::{Form, accepted_form};
pub(crate) use list_options::{ListOptions, VersionMatch};
pub(crate) use query::Query;
pub(crate) use route::{Route, route};
pub use target::{Target, Verb};
pub use write::Now;
pub(crate) use write::Write;
