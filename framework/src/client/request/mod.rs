//! Requests and responses of the API: path and query, body, decoded response, and error.

mod error;
mod head;
mod payload;
mod response;
mod status;
mod target;

pub use error::{ApiError, Cause, ErrorClass};
pub(super) use error::{chain, transport};
pub use payload::{DeleteOptions, DeletionPropagation, ListOptions, Patch, Payload, Subresource};
pub use response::{Deleted, Page, Written};
pub(super) use status::read_status;
pub(super) use target::{Query, Target};
