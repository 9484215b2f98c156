//! Leadership of this manager, as the keeper of a lease publishes it.

use kcm_framework::Predecessor;
use kcm_framework::client::Mark;

/// Leadership of this manager, and the name of the leader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    /// The identity of the holder, as far as it is known.
    pub(crate) holder: Option<String>,
    /// The number of this term of leadership; `None` while this manager does not lead. Another manager may have led
    /// between two terms.
    pub(crate) term: Option<u64>,
    /// `true` while this manager does not lead, but is likely to lead within a second: the lease of the leader expires.
    pub(crate) is_expected: bool,
    /// The manager that led before this term.
    pub(crate) predecessor: Predecessor,
    /// Time at which the last successful renewal was sent, while this manager leads.
    pub(crate) renewed_at: Option<Mark>,
    /// Until when this manager leads without another renewal, while it leads.
    pub(crate) leads_until: Option<Mark>,
    /// Until when a write of this manager may take effect, while it leads.
    pub(crate) writes_until: Option<Mark>,
}
