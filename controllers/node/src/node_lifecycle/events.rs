//! The events about Nodes and Pods.

use kcm_framework::events::{Event, EventText};

/// An event about the Node of that name, or about one of its Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeEvent<'a> {
    Registered(&'a str),
    Removing(&'a str),
    /// The condition `Ready` of the Node was true and is unknown now.
    NotReady(&'a str),
    /// A Pod is not ready because its Node is not.
    PodNotReady,
}

impl Event for NodeEvent<'_> {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::Registered(node) => {
                EventText::normal("RegisteredNode", format!("Node {node} event: Registered Node {node} in Controller"))
            }
            Self::Removing(node) => {
                EventText::normal("RemovingNode", format!("Node {node} event: Removing Node {node} from Controller"))
            }
            Self::NotReady(node) => {
                EventText::normal("NodeNotReady", format!("Node {node} status is now: NodeNotReady"))
            }
            Self::PodNotReady => EventText::warning("NodeNotReady", "Node is not ready"),
        }
    }
}
