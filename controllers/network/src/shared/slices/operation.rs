//! The changes of slices that metrics count.

/// A change of a slice, as the label `operation` names it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    /// `create`
    Create,
    /// `update`
    Update,
    /// `delete`
    Delete,
}

impl Operation {
    /// The value of the label.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}
