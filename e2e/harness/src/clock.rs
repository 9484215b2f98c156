//! The wall clock, by which a real API server and its controllers write times.

use jiff::Timestamp;

/// The present time.
#[expect(clippy::disallowed_methods, reason = "a real API server keeps real time")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
