//! The plan for a token: whether and when it is deleted.

use jiff::Timestamp;

use crate::shared::Expiry;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Keep,
    Wait { until: Timestamp },
    Delete(Expired),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expired {
    At(Timestamp),
    Unreadable,
}

/// Plans for a token with that expiry at `now`.
pub(super) fn plan(expiry: Expiry, now: Timestamp) -> Plan {
    match expiry {
        Expiry::Never => Plan::Keep,
        Expiry::At(until) if !expiry.has_passed(now) => Plan::Wait { until },
        Expiry::At(at) => Plan::Delete(Expired::At(at)),
        Expiry::Unreadable => Plan::Delete(Expired::Unreadable),
    }
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(self) -> String {
        match self {
            Self::Keep => "keeps the token, which never expires".to_owned(),
            Self::Wait { until } => format!("keeps the token until {until}, when it expires"),
            Self::Delete(Expired::At(at)) => format!("deletes the token, which expired at {at}"),
            Self::Delete(Expired::Unreadable) => "deletes the token, whose expiration is no time".to_owned(),
        }
    }
}
