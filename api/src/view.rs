//! The views that a cache can hold.

use std::any::TypeId;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;

use crate::decode_error::DecodeError;
use crate::document::Document;
use crate::meta::Meta;
use crate::protobuf::{Field, Malformed, Message, Reader};
use crate::resource::Resource;

/// An object in a cache: decoded once from the bytes of the API, then shared and never changed.
///
/// Implemented by the slim views of this crate, by [`Documented`](crate::Documented) for kinds that are updated whole,
/// by [`PartialObjectMeta`] for kinds known only at run time, and by [`Typed`] for any type that serde reads.
pub trait View: Send + Sync + Sized + 'static {
    /// `true` if the API server is asked for metadata alone.
    const METADATA_ONLY: bool = false;

    /// `true` if the API server is asked for protobuf. If it serves protobuf, objects are decoded with
    /// [`decode_protobuf`](Self::decode_protobuf).
    const READS_PROTOBUF: bool = false;

    /// The view that declares the [`Need`](crate::Need)s.
    #[doc(hidden)]
    const DECLARED: TypeId = TypeId::of::<Self>();

    /// The annotations that [`Meta::annotations`] has, in addition to the annotations that a controller
    /// [needs](crate::Need::annotation).
    const ANNOTATIONS: &'static [&'static str] = &[];

    /// Decodes one object from its JSON.
    fn decode(json: &str) -> Result<Self, DecodeError>;

    /// Decodes one object from its message, without the envelope.
    ///
    /// # Errors
    /// Fails if the message is malformed, or if the view does not read protobuf.
    fn decode_protobuf(message: &[u8]) -> Result<Self, DecodeError> {
        let _ = message;
        Err(Malformed::Refused("this view does not read protobuf".to_owned()).into())
    }

    /// Metadata of the object.
    fn meta(&self) -> &Meta;

    /// The memory of the object at least, in bytes: the view itself, its name, and JSON that is kept.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.meta().key.name().len()
    }
}

/// A view of a resource that is known at compile time.
pub trait KnownView: View {
    /// The resource that is listed and watched for this view.
    const RESOURCE: Resource;
}

/// The view of metadata alone, for kinds known only at run time.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct PartialObjectMeta {
    /// Metadata of the object.
    pub metadata: Meta,
}

impl View for PartialObjectMeta {
    const METADATA_ONLY: bool = true;

    const READS_PROTOBUF: bool = true;

    fn decode(json: &str) -> Result<Self, DecodeError> {
        Ok(serde_json::from_str(json)?)
    }

    fn decode_protobuf(message: &[u8]) -> Result<Self, DecodeError> {
        const OBJECT: &Message = &[Field::one(1, "metadata", Meta::MESSAGE)];
        Ok(Self::deserialize(Reader::new(message, OBJECT))?)
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The view of any serde type, such as a `k8s-openapi` struct, with its metadata.
///
/// It takes the memory of `T`; a slim view is an order of magnitude smaller. `metadata.managedFields` is left out,
/// because it takes several times the memory of all other fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed<T> {
    meta: Meta,
    /// The object as its own type.
    pub object: T,
}

impl<T: DeserializeOwned + Send + Sync + 'static> View for Typed<T> {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        let document = Document::parse(json)?;
        let PartialObjectMeta { metadata: meta } = serde_json::from_str(document.as_str())?;
        Ok(Self { meta, object: serde_json::from_str(document.as_str())? })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
