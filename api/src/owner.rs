//! Owner references, and checks on them.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::decode::null_as_default;
use crate::intern::InternedStr;
use crate::key::Uid;
use crate::protobuf::{Field, Message};
use crate::resource::Resource;

/// A reference from an object to one of its owners.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `apiVersion` of the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub api_version: InternedStr,
    /// Kind of the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub kind: InternedStr,
    /// Name of the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: InternedStr,
    /// The uid of the owner, which alone identifies it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uid: Uid,
    /// Whether this owner is the managing controller.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Not::not")]
    pub controller: bool,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Not::not")]
    pub block_owner_deletion: bool,
}

impl OwnerReference {
    /// The protobuf fields of an owner reference.
    pub const MESSAGE: &'static Message = &[
        Field::text(1, "kind"),
        Field::text(3, "name"),
        Field::text(4, "uid"),
        Field::text(5, "apiVersion"),
        Field::flag(6, "controller"),
        Field::flag(7, "blockOwnerDeletion"),
    ];

    /// The owner reference to the object with that resource, name and uid as the managing controller.
    ///
    /// It sets `blockOwnerDeletion`, like `metav1.NewControllerRef`.
    #[must_use]
    pub fn controller_of(resource: &Resource, name: &str, uid: &Uid) -> Self {
        Self {
            api_version: InternedStr::from(resource.api_version()),
            kind: InternedStr::from(&*resource.kind),
            name: InternedStr::from(name),
            uid: uid.clone(),
            controller: true,
            block_owner_deletion: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{KnownView, PartialObjectMeta, View};
    use crate::views::ReplicaSetView;

    #[test]
    fn a_controller_reference_is_written_as_upstream_writes_it() {
        let owner = r#"{"metadata":{"name":"web","namespace":"a","uid":"u1"}}"#;
        let owner = PartialObjectMeta::decode(owner).unwrap();
        let reference =
            OwnerReference::controller_of(&ReplicaSetView::RESOURCE, owner.meta().key.name(), &owner.meta().uid);
        let json = r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u1","controller":true,"blockOwnerDeletion":true}"#;
        assert_eq!(serde_json::to_string(&reference).unwrap(), json);
        assert_eq!(serde_json::from_str::<OwnerReference>(json).unwrap(), reference);
    }

    #[test]
    fn unset_flags_are_optional_and_omitted() {
        let json = r#"{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}"#;
        let reference: OwnerReference = serde_json::from_str(json).unwrap();
        assert!(!reference.controller && !reference.block_owner_deletion);
        assert_eq!(serde_json::to_string(&reference).unwrap(), json);
    }
}
