//! The lifetime of a certificate.

use jiff::SignedDuration;

/// Shortest lifetime that a requester can ask for.
const MINIMUM: SignedDuration = SignedDuration::from_mins(10);

/// Returns the lifetime of a certificate: as configured, or shorter if requested, but at least ten minutes.
pub(crate) fn requested_duration(configured: SignedDuration, requested_seconds: Option<i32>) -> SignedDuration {
    let Some(seconds) = requested_seconds else { return configured };
    let requested = SignedDuration::from_secs(seconds.into());
    if requested > configured { configured } else { requested.max(MINIMUM) }
}
