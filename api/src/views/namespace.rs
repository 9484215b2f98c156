//! The view of a Namespace.

use serde::Deserialize;

use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;

crate::view! {
    /// A Namespace without its JSON.
    pub struct Namespace {
        resource: Resource::cluster_scoped("", "v1", "namespaces", "Namespace");

        "status" @ 3 {
            /// Where in its life it is.
            pub phase: NamespacePhase = "phase" @ 1;
        }
    }
}

/// Where in its life a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub enum NamespacePhase {
    /// The namespace is in use.
    Active,
    /// Being emptied: nothing new can be made in it.
    Terminating,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

impl ProtobufType for NamespacePhase {
    const KIND: Kind = Kind::Text;
}
