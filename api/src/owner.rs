//! Owner references.

use serde::{Deserialize, Serialize};

use crate::{Istr, Uid};

/// A reference from an object to one of its owners.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `apiVersion` of the owner.
    #[serde(default)]
    pub api_version: Istr,
    /// Kind of the owner.
    #[serde(default)]
    pub kind: Istr,
    /// Name of the owner.
    #[serde(default)]
    pub name: Istr,
    /// Identity of the owner: the only thing that decides who owns.
    #[serde(default)]
    pub uid: Uid,
    /// Whether this owner is the managing controller.
    #[serde(default)]
    pub controller: bool,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(default)]
    pub block_owner_deletion: bool,
}
