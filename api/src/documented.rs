//! Views of kinds that a controller puts back whole.

use std::any::TypeId;
use std::borrow::Cow;
use std::ops::Deref;

use serde_json::value::RawValue;

use crate::decode_error::DecodeError;
use crate::document::Document;
use crate::meta::Meta;
use crate::resource::Resource;
use crate::view::{KnownView, View};

/// A view, with the JSON of the object that it was read from.
///
/// It dereferences to the view. To update the object, clone the document, edit it and send it.
#[derive(Debug, Clone, PartialEq)]
pub struct Documented<V> {
    /// The fields that decisions read.
    pub view: V,
    /// The JSON of the object, which is edited and written back.
    pub document: Document,
}

impl<V> Documented<V> {
    /// The JSON at `path`, for parts that are carried without being read, as a pod template is.
    #[must_use]
    pub fn raw(&self, path: &[&str]) -> Option<&RawValue> {
        self.document.raw(path)
    }

    /// Returns the value of an annotation, even of an annotation that the view does not keep. Reads the whole document.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.document.annotations().remove(key)
    }

    /// Returns the JSON of the pod template, `spec.template`, which every kind that creates pods has.
    #[must_use]
    pub fn template(&self) -> Option<&RawValue> {
        self.raw(&["spec", "template"])
    }
}

impl<V> Deref for Documented<V> {
    type Target = V;
    fn deref(&self) -> &V {
        &self.view
    }
}

impl<V: View> View for Documented<V> {
    const DECLARED: TypeId = V::DECLARED;

    const ANNOTATIONS: &'static [&'static str] = V::ANNOTATIONS;

    fn decode(json: &str) -> Result<Self, DecodeError> {
        let document = Document::parse(json)?;
        // The document is smaller than the response, because it has no managed fields.
        Ok(Self { view: V::decode(document.as_str())?, document })
    }

    fn meta(&self) -> &Meta {
        self.view.meta()
    }

    fn bytes(&self) -> usize {
        self.view.bytes() + size_of::<Document>() + self.document.as_str().len()
    }
}

impl<V: KnownView> KnownView for Documented<V> {
    const RESOURCE: Resource = V::RESOURCE;
}
