//! Requests and responses of the API: path and query, body, decoded response, and error.

mod answer;
mod attempts;
mod call;
mod error;
mod error_class;
mod head;
mod payload;
mod query;
mod response;
mod scale;
mod status;
mod target;
mod write_outcome;
mod write_record;

pub(super) use answer::{RequestKind, ResponseKind, retry_after};
pub use attempts::Attempts;
pub use call::Call;
pub(super) use call::has_name;
pub use error::{ApiError, Cause, ResponseExt};
pub(super) use error::{chain, transport};
pub use error_class::ErrorClass;
pub(crate) use head::Head;
pub use payload::{DeleteOptions, DeletionPropagation, ListQuery, Patch, Payload, Subresource};
pub use response::{Deleted, Page, Written};
pub use scale::Scale;
pub(super) use status::read_status;
pub(super) use target::Target;
pub use write_outcome::WriteOutcome;
pub use write_record::{Unversioned, WriteRecord, WrittenTo};
