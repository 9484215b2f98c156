//! The plan for a storage version: its entries, and what follows from them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kcm_framework::api::name::is_dns_subdomain;
use kcm_framework::api::{Document, EditError, InternedStr, Meta, ObjectKey};
use serde_json::{Map, Value, json};

use super::view::StorageVersion;

/// The label of identity Leases, and its value for kube-apiserver.
pub(super) const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");

const CONDITION: &str = "AllEncodingVersionsEqual";

/// The key of the Lease of an API server.
pub(super) fn lease_key(server: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-system", server.to_owned())
}

/// Returns `true` if a Lease can have this name. A Lease of another name does not exist.
pub(super) fn can_name_a_lease(server: &str) -> bool {
    is_dns_subdomain(server)
}

/// Returns `true` if the object of an API server exists and is an identity Lease.
pub(super) fn is_identity(lease: Option<&Meta>) -> bool {
    let (label, value) = IDENTITY;
    lease.is_some_and(|lease| lease.labels.get(label).is_some_and(|found| found == value))
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// Every entry has its API server, or there is none.
    Keep,
    /// The storage version loses its last entry and is being deleted.
    Terminating,
    /// It loses its last entry.
    Delete,
    /// It keeps `kept` entries.
    Update { document: Document, kept: usize },
}

/// Plans for a storage version, if these API servers are gone.
pub(super) fn plan(
    storage_version: &StorageVersion,
    gone: &BTreeSet<InternedStr>,
    now: Timestamp,
) -> Result<Plan, EditError> {
    let stays = |index: usize| !gone.contains(&storage_version.entries[index].server);
    let kept: Vec<usize> = (0..storage_version.entries.len()).filter(|index| stays(*index)).collect();
    if kept.len() == storage_version.entries.len() {
        return Ok(Plan::Keep);
    }
    if kept.is_empty() {
        return Ok(if storage_version.metadata.is_terminating() { Plan::Terminating } else { Plan::Delete });
    }
    let mut document = storage_version.document.clone();
    let entries = storage_version.document.items(&["status", "storageVersions"])?;
    let entries: Vec<_> = kept.iter().filter_map(|index| entries.get(*index)).collect();
    document.set(&["status", "storageVersions"], &entries)?;
    let mut encodings = kept.iter().map(|index| &storage_version.entries[*index].encoding);
    let first = encodings.next();
    let common = first.filter(|first| encodings.all(|other| other == *first));
    set_common(&mut document, storage_version, common, now)?;
    Ok(Plan::Update { document, kept: kept.len() })
}

/// Sets the common encoding version and its condition.
///
/// # Upstream
/// `SetCommonEncodingVersion` of `apiserver/pkg/storageversion`. The time of the condition also changes with the common
/// version.
fn set_common(
    document: &mut Document,
    storage_version: &StorageVersion,
    common: Option<&InternedStr>,
    now: Timestamp,
) -> Result<(), EditError> {
    let path = ["status", "commonEncodingVersion"];
    let (status, reason, message) = if let Some(common) = common {
        document.set(&path, &**common)?;
        ("True", "CommonEncodingVersionSet", "Common encoding version set")
    } else {
        document.remove(&path)?;
        ("False", "CommonEncodingVersionUnset", "Common encoding version unset")
    };
    let conditions_path = ["status", "conditions"];
    let conditions = storage_version.document.get(&conditions_path).and_then(|text| serde_json::from_str(text).ok());
    let mut conditions: Vec<Map<String, Value>> = conditions.unwrap_or_default();
    let moved = matches!((&storage_version.common, common), (Some(before), Some(after)) if before != after);
    let at = conditions.iter().position(|condition| condition.get("type").is_some_and(|type_| type_ == CONDITION));
    let at = at.unwrap_or_else(|| {
        conditions.push(Map::from_iter([("type".to_owned(), json!(CONDITION))]));
        conditions.len() - 1
    });
    let condition = &mut conditions[at];
    if moved || condition.get("status").is_none_or(|before| before != status) {
        let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
        condition.insert("lastTransitionTime".to_owned(), json!(seconds));
    }
    for (field, value) in [
        ("status", json!(status)),
        ("observedGeneration", json!(storage_version.metadata.generation)),
        ("reason", json!(reason)),
        ("message", json!(message)),
    ] {
        condition.insert(field.to_owned(), value);
    }
    document.set(&conditions_path, &conditions)
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self, gone: &BTreeSet<InternedStr>) -> String {
        let gone = || gone.iter().map(|server| &**server).collect::<Vec<_>>().join(", ");
        match self {
            Self::Keep => "keeps all entries, whose API servers exist".to_owned(),
            Self::Terminating => "leaves the storage version, which is being deleted".to_owned(),
            Self::Delete => format!("deletes the storage version, of which no API server exists: {}", gone()),
            Self::Update { kept, .. } => {
                format!("keeps {kept} entries and removes the entries of deleted API servers: {}", gone())
            }
        }
    }
}
