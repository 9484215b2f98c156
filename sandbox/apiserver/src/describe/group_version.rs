//! Groups and versions, and their paths.

#[cfg(feature = "kubectl")]
use crate::kinds::Kind;

/// A version of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupVersion<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
}

impl GroupVersion<'_> {
    /// Its form in URLs: `api/v1`, `apis/apps/v1`.
    pub(crate) fn path(self) -> String {
        let Self { group, version } = self;
        if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
    }
}

#[cfg(feature = "kubectl")]
impl<'a> GroupVersion<'a> {
    pub(super) fn of(kind: &'a Kind) -> Self {
        Self { group: &kind.resource.group, version: &kind.resource.version }
    }
}
