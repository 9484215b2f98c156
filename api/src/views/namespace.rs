//! Namespaces.

use serde::Deserialize;

use crate::decode::null_as_default;
use crate::{DecodeError, KnownView, Meta, Resource, View};

/// A namespace.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Namespace {
    /// Metadata of the namespace.
    pub metadata: Meta,
    /// Where in its life it is.
    pub phase: NamespacePhase,
}

/// Where in its life a namespace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[non_exhaustive]
pub enum NamespacePhase {
    /// In use.
    Active,
    /// Being emptied: nothing new can be made in it.
    Terminating,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct RawNamespace {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
struct RawStatus {
    #[serde(default, deserialize_with = "null_as_default")]
    phase: NamespacePhase,
}

impl View for Namespace {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        let RawNamespace { metadata, status } = serde_json::from_str(json)?;
        Ok(Self { metadata, phase: status.phase })
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl KnownView for Namespace {
    const RESOURCE: Resource = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");
}
