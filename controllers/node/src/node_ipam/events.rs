//! The events about Nodes.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeEvent<'a> {
    /// No block is free for the Node of that name.
    NotAvailable(&'a str),
    /// The pod CIDRs could not be written.
    AssignmentFailed(&'a str),
}

impl Event for NodeEvent<'_> {
    fn text(&self) -> EventText<'_> {
        let (node, reason) = match self {
            Self::NotAvailable(node) => (node, "CIDRNotAvailable"),
            Self::AssignmentFailed(node) => (node, "CIDRAssignmentFailed"),
        };
        EventText::normal(reason, format!("Node {node} status is now: {reason}"))
    }
}
