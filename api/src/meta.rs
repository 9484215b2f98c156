//! Metadata of an object: the fields that controllers read.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use crate::annotations::is_kept;
use crate::decode::{null_as_default, text};
use crate::intern::InternedStr;
use crate::key::{ObjectKey, Uid};
use crate::labels::Labels;
use crate::owner::OwnerReference;
use crate::protobuf::{Field, Kind, Message, ProtobufType};
use crate::shared::Shared;
use crate::version::ResourceVersion;

/// Metadata of an object: the fields that controllers read.
///
/// Other fields, such as `managedFields`, are skipped without allocating.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Meta {
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// Identity of the object: unique over time.
    pub uid: Uid,
    /// Version of this state of the object.
    pub resource_version: ResourceVersion,
    /// Number of changes to the desired state; 0 if the kind does not count them.
    pub generation: i64,
    /// Time at which the API server created the object.
    pub creation_timestamp: Option<Timestamp>,
    /// Time at which the object is to be deleted. If it is set, the object is terminating.
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels, sorted by key.
    pub labels: Labels,
    /// The annotations that the view keeps, sorted by key: see [`View::ANNOTATIONS`](crate::View::ANNOTATIONS)
    /// and [`Need::annotation`](crate::Need::annotation).
    ///
    /// The document has all annotations, for a controller that copies them.
    pub annotations: Labels,
    /// Owners, in the order served.
    pub owner_references: Shared<[OwnerReference]>,
    /// Finalizers, in the order served.
    pub finalizers: Box<[InternedStr]>,
}

impl Meta {
    /// Its fields in protobuf.
    pub const MESSAGE: &'static Message = &[
        Field::text(1, "name"),
        Field::text(3, "namespace"),
        Field::text(5, "uid"),
        Field::text(6, "resourceVersion"),
        Field::integer(7, "generation"),
        Field::time(8, "creationTimestamp"),
        Field::time(9, "deletionTimestamp"),
        Field::map(11, "labels"),
        Field::map(12, "annotations"),
        Field::list(13, "ownerReferences", &Kind::One(OwnerReference::MESSAGE)),
        Field::strings(14, "finalizers"),
    ];

    /// Returns `true` if the object is being deleted.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that controls this object, if any.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// Returns `true` if this object is controlled by the object with that uid.
    #[must_use]
    pub fn is_controlled_by(&self, uid: &Uid) -> bool {
        self.controller().is_some_and(|owner| owner.uid == *uid)
    }
}

impl ProtobufType for Meta {
    const KIND: Kind = Kind::One(Self::MESSAGE);
}

impl Default for Meta {
    /// Metadata of an object without any.
    fn default() -> Self {
        Self::from(RawMeta::default())
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMeta<'a> {
    #[serde(default, borrow, deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    namespace: Option<InternedStr>,
    #[serde(default, deserialize_with = "null_as_default")]
    uid: Uid,
    #[serde(default, deserialize_with = "null_as_default")]
    resource_version: ResourceVersion,
    #[serde(default, deserialize_with = "null_as_default")]
    generation: i64,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    labels: Labels,
    #[serde(default, deserialize_with = "kept_annotations")]
    annotations: Labels,
    #[serde(default, deserialize_with = "null_as_default")]
    owner_references: Shared<[OwnerReference]>,
    #[serde(default, deserialize_with = "null_as_default")]
    finalizers: Box<[InternedStr]>,
}

fn kept_annotations<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    Labels::deserialize_filtered(deserializer, is_kept)
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawMeta::deserialize(deserializer).map(Self::from)
    }
}

impl From<RawMeta<'_>> for Meta {
    fn from(raw: RawMeta<'_>) -> Self {
        let name: Arc<str> = raw.name.map_or_else(Arc::default, |name| Arc::from(&*name));
        let key = match raw.namespace {
            Some(namespace) if !namespace.is_empty() => ObjectKey::namespaced(namespace, name),
            Some(_) | None => ObjectKey::cluster_scoped(name),
        };
        Self {
            key,
            uid: raw.uid,
            resource_version: raw.resource_version,
            generation: raw.generation,
            creation_timestamp: raw.creation_timestamp,
            deletion_timestamp: raw.deletion_timestamp,
            labels: raw.labels,
            annotations: raw.annotations,
            owner_references: raw.owner_references,
            finalizers: raw.finalizers,
        }
    }
}
