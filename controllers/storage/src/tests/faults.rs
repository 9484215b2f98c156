//! Faults of the API server that the tests of several controllers inject.

use kcm_testing::sandbox::{Fault, Status};

/// Writes whose answer is lost, that fail, and that are throttled: a controller ends as without them.
pub(crate) fn passing_faults() -> [Fault; 3] {
    let unavailable = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    [
        Fault::on_writes().times(2).lose_answer(),
        Fault::on_writes().times(5).fail(unavailable),
        Fault::on_writes().times(30).fail(Status::too_many_requests(1)),
    ]
}
