//! [`passing_faults`]: faults under which a controller ends as without them.

use kcm_sandbox_apiserver::{Fault, Status};

/// Returns faults of writes that pass by themselves: two lost responses, five failures and thirty rejections by the rate
/// limit of the API server.
///
/// Inject one at a time, in [`TestEnvironment::prepare`](crate::TestEnvironment::prepare) or during the test.
pub fn passing_faults() -> [Fault; 3] {
    let unavailable = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    [
        Fault::on_writes().times(2).lose_answer(),
        Fault::on_writes().times(5).fail(unavailable),
        Fault::on_writes().times(30).fail(Status::too_many_requests(1)),
    ]
}
