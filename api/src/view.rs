//! What a cache can hold.

use serde::de::DeserializeOwned;

use crate::{Meta, Resource};

/// An object as a cache keeps it: decoded once from the bytes of the API, then shared and never changed.
///
/// Implemented by the slim views of this crate, by [`Documented`](crate::Documented) for kinds that are put
/// whole, by [`PartialObjectMeta`] for kinds known only at run time, and by [`Typed`] for any type that serde reads.
pub trait View: Send + Sync + Sized + 'static {
    /// Whether the API server is asked for metadata alone.
    const METADATA_ONLY: bool = false;

    /// Decodes one object from its JSON.
    fn decode(json: &str) -> Result<Self, DecodeError>;

    /// Metadata of the object.
    fn meta(&self) -> &Meta;
}

/// A view of a resource that is known when compiled.
pub trait KnownView: View {
    /// The resource that is listed and watched for this view.
    const RESOURCE: Resource;
}

/// An object that cannot be read as the view wants it.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode an object of the API")]
pub struct DecodeError(#[from] serde_json::Error);

impl From<DecodeError> for serde_json::Error {
    fn from(error: DecodeError) -> Self {
        error.0
    }
}

/// Metadata alone, for kinds known only at run time.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct PartialObjectMeta {
    /// Metadata of the object.
    pub metadata: Meta,
}

impl View for PartialObjectMeta {
    const METADATA_ONLY: bool = true;

    fn decode(json: &str) -> Result<Self, DecodeError> {
        Ok(serde_json::from_str(json)?)
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Any type that serde reads, `k8s-openapi` structs included, beside our own reading of its metadata.
///
/// Costs what `T` costs; a slim view is an order of magnitude smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed<T> {
    meta: Meta,
    /// The object.
    pub object: T,
}

impl<T: DeserializeOwned + Send + Sync + 'static> View for Typed<T> {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        let PartialObjectMeta { metadata: meta } = serde_json::from_str(json)?;
        Ok(Self { meta, object: serde_json::from_str(json)? })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
