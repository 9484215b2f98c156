//! The next page of a list.

use super::Protocol;

/// The page that a list by page requests next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageRequest {
    /// The `continue` token of the previous page; `None` for the first page.
    pub(super) continue_token: Option<String>,
    /// The greatest number of objects on the page.
    pub(super) limit: u32,
}

impl PageRequest {
    /// The first page of a new list.
    pub(super) const FIRST: Self = Self { continue_token: None, limit: Protocol::PAGE_SIZE };

    /// The page after this one.
    pub(super) const fn next(&self, continue_token: String) -> Self {
        Self { continue_token: Some(continue_token), limit: self.limit }
    }

    /// The same page with fewer objects; `None` if it has one object only.
    pub(super) fn smaller(self) -> Option<Self> {
        (self.limit > 1).then(|| Self { limit: (self.limit / 4).max(1), ..self })
    }
}
