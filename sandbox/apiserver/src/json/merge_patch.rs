//! JSON merge patch (RFC 7386).

use serde_json::Value;

use super::map_of;

/// Merges `patch` into `target`: maps field by field; null removes a field, any other value replaces it.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    let target = map_of(target);
    for (field, value) in patch {
        if value.is_null() {
            target.remove(field);
        } else {
            merge(target.entry(field).or_insert(Value::Null), value);
        }
    }
}
