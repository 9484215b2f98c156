//! Patches: JSON patch, JSON merge patch and strategic merge patch. Pure.

pub(crate) mod json_patch;
pub(crate) mod strategic;

use serde_json::Value;

use crate::decode;
use crate::json::{self, merge};
use crate::media_type::{APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH};
use crate::schema::Struct;
use crate::status::Status;

/// The kind of object that is patched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patched {
    /// An object of a built-in kind, with its type if that is known.
    BuiltIn(Option<&'static Struct>),
    /// A custom resource: its lists have no merge keys.
    Custom,
}

/// Reports whether this content type is server-side apply.
pub(crate) fn is_apply(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim() == APPLY_PATCH
}

/// Rejects patch types that this kind of object does not support.
pub(crate) fn check_type(content_type: &str, patched: Patched) -> Result<(), Status> {
    match (content_type.split(';').next().unwrap_or_default(), patched) {
        (JSON_PATCH | MERGE_PATCH, _) | (STRATEGIC_MERGE_PATCH, Patched::BuiltIn(_)) => Ok(()),
        (_, Patched::Custom) => Err(Status::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH])),
        (_, Patched::BuiltIn(_)) => {
            Err(Status::without_details(415, "UnsupportedMediaType", "415: Unsupported Media Type"))
        }
    }
}

/// Applies a patch of the given content type to `object`.
pub(crate) fn apply(content_type: &str, object: &Value, body: &[u8], patched: Patched) -> Result<Value, Status> {
    check_type(content_type, patched)?;
    match (content_type.split(';').next().unwrap_or_default(), patched) {
        (JSON_PATCH, _) => json_patch::apply(object, &read(body, "error decoding patch: ")?),
        (MERGE_PATCH, _) => {
            let patch = read(body, "error decoding patch: ")?;
            if patch.is_null() {
                return Err(Status::bad_request("Invalid JSON Patch"));
            }
            check_map("error decoding patch: ", &patch)?;
            let mut patched = object.clone();
            merge(&mut patched, &patch);
            Ok(patched)
        }
        (STRATEGIC_MERGE_PATCH, Patched::BuiltIn(shape)) => {
            let mut patch = read(body, "")?;
            if patch.is_null() {
                return Ok(object.clone());
            }
            check_map("", &patch)?;
            let mut patched = object.clone();
            strategic::merge(json::map_of(&mut patched), std::mem::take(json::map_of(&mut patch)), shape)?;
            Ok(patched)
        }
        (_, Patched::Custom | Patched::BuiltIn(_)) => unreachable!("the content type was checked"),
    }
}

fn read(body: &[u8], before: &str) -> Result<Value, Status> {
    decode::parse_json(body).map_err(|why| Status::bad_request(format!("{before}{why}")))
}

fn check_map(before: &str, patch: &Value) -> Result<(), Status> {
    if patch.is_object() { Ok(()) } else { Err(not_decoded(before, patch, "map[string]interface {}")) }
}

/// A patch that is JSON of another type.
pub(crate) fn not_decoded(before: &str, value: &Value, wanted: &str) -> Status {
    let given = kind_of(value);
    Status::bad_request(format!("{before}json: cannot unmarshal {given} into Go value of type {wanted}"))
}

/// Returns the name of a JSON type in Go's decoding errors.
pub(crate) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON without nulls, which a merge patch cannot set.
    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..4_i64).prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn maps() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", documents(), 0..3).prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    /// The merge patch that leads from one document to the other.
    fn difference(from: &Value, to: &Value) -> Value {
        let (Some(old), Some(new)) = (from.as_object(), to.as_object()) else { return to.clone() };
        let mut patch = serde_json::Map::new();
        for field in old.keys().filter(|field| !new.contains_key(*field)) {
            patch.insert(field.clone(), Value::Null);
        }
        for (field, value) in new.iter().filter(|(field, value)| old.get(*field) != Some(value)) {
            let nested = old.get(field).map_or_else(|| value.clone(), |old| difference(old, value));
            patch.insert(field.clone(), nested);
        }
        Value::Object(patch)
    }

    proptest! {
        #[test]
        fn the_difference_of_two_documents_leads_from_one_to_the_other(from in maps(), to in maps()) {
            let patch = difference(&from, &to);
            let mut merged = from.clone();
            merge(&mut merged, &patch);
            prop_assert_eq!(&merged, &to);

            // Lists without merge keys are replaced whole, so that strategic merge means the same for them.
            let body = patch.to_string();
            let strategic = apply(STRATEGIC_MERGE_PATCH, &from, body.as_bytes(), Patched::BuiltIn(None));
            prop_assert_eq!(strategic.as_ref(), Ok(&to));
        }

        #[test]
        fn a_merge_patch_is_idempotent(from in maps(), patch in maps()) {
            let mut once = from;
            merge(&mut once, &patch);
            let mut twice = once.clone();
            merge(&mut twice, &patch);
            prop_assert_eq!(once, twice);
        }
    }
}
