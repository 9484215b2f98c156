//! The patch of `node.status.volumesAttached`.

use std::collections::BTreeSet;

use kcm_framework::api::views::AttachedVolume;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An entry of `node.status.volumesAttached`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportedVolume {
    pub(super) name: String,
    #[serde(default)]
    pub(super) device_path: String,
}

impl From<&AttachedVolume> for ReportedVolume {
    fn from(entry: &AttachedVolume) -> Self {
        Self { name: entry.name.to_string(), device_path: entry.device_path.to_string() }
    }
}

/// Returns the patch that adds and removes volumes, or `None` if the node reports the result already.
///
/// Other entries keep their order. New entries follow in the order of their names. A volume in both sets is removed,
/// because a volume must leave the report before it is detached. The uid keeps the patch off a recreated node.
pub(super) fn patch(
    uid: &str,
    current: &[ReportedVolume],
    attached: &BTreeSet<&str>,
    detached: &BTreeSet<&str>,
) -> Option<Value> {
    let known: BTreeSet<_> = current.iter().map(|volume| volume.name.as_str()).collect();
    let is_removed = known.iter().any(|name| detached.contains(name));
    let mut added = attached.iter().filter(|name| !known.contains(*name) && !detached.contains(*name)).peekable();
    if !is_removed && added.peek().is_none() {
        return None;
    }
    let kept = current.iter().filter(|volume| !detached.contains(volume.name.as_str())).cloned();
    let added = added.map(|name| ReportedVolume { name: (*name).to_owned(), device_path: String::new() });
    let volumes: Vec<_> = kept.chain(added).collect();
    // The list is atomic. A strategic merge patch removes it with `null`, as upstream does.
    let volumes = if volumes.is_empty() { Value::Null } else { json!(volumes) };
    Some(json!({ "metadata": { "uid": uid }, "status": { "volumesAttached": volumes } }))
}
