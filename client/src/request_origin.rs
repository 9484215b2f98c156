//! The origin of a request.

use std::fmt;
use std::sync::Arc;

/// The reconcile that sends a request: its loop, key and attempt.
///
/// It is an extension of each request of a loop, so that a layer of the connection knows for which key a request is sent.
/// Nothing of it reaches the API server. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestOrigin {
    /// The name of the loop.
    pub loop_name: &'static str,
    /// The key as text, mostly `NAMESPACE/NAME`. `None` for requests of the loop itself, such as its live checks.
    pub key: Option<Arc<str>>,
    /// Number of the attempt to reconcile the key, counted from 1 after each success. 0 without a key.
    pub attempt: u32,
}

impl RequestOrigin {
    /// The origin of requests of a loop that belong to no key.
    #[must_use]
    pub const fn of_loop(loop_name: &'static str) -> Self {
        Self { loop_name, key: None, attempt: 0 }
    }

    /// The origin of the requests of one reconcile.
    #[must_use]
    pub fn of_key(loop_name: &'static str, key: &dyn fmt::Display, attempt: u32) -> Self {
        Self { loop_name, key: Some(key.to_string().into()), attempt }
    }
}
