//! The priority of a key.

/// The priority of a key: live changes go before objects of an initial list.
///
/// Ordered: the greater is handed out first, and merging adds of one key keeps the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// The object was found by an initial list or a resync.
    Initial,
    /// The object has just changed.
    Live,
}
