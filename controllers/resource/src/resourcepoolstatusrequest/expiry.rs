//! The time at which a request is deleted. Pure.

use jiff::{SignedDuration, Timestamp};

use super::views::PoolStatusRequest;

/// Time for which a request with a status is kept.
const COMPLETED: SignedDuration = SignedDuration::from_hours(1);

/// Time for which a request without a status is kept.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// Returns the time after which the request is deleted; `None` if its age is not known.
///
/// Example: a request that was created at 10:00 and completed at 10:01 is deleted after 11:01. Without a status it is
/// deleted after 10:00 of the next day.
pub(super) fn expires_at(request: &PoolStatusRequest) -> Option<Timestamp> {
    let created = request.metadata.creation_timestamp;
    if request.has_status {
        request.completed.or(created)?.checked_add(COMPLETED).ok()
    } else {
        created?.checked_add(PENDING).ok()
    }
}
