//! How urgent a key is.

/// How urgent a key is: live changes go before what an initial list found.
///
/// Ordered: the greater goes first, and where adds of one key meet, the greater stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Found by an initial list or a resync: due to be looked at, but nothing has just happened to it.
    Initial,
    /// Something has just happened to it.
    Live,
}
