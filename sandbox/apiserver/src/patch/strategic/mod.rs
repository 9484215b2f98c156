//! Strategic merge patch: maps field by field, lists by their schema. Pure.
//!
//! ```text
//! patch ──▶ directives of this map ──▶ lists whose order is given ──▶ all other fields ──▶ merged
//!           $patch, $retainKeys        $setElementOrder/…             $deleteFromPrimitiveList/…
//! ```
//!
//! # Upstream
//! `apimachinery/pkg/util/strategicpatch`; errors are returned by `apiserver/pkg/endpoints/handlers/patch.go`

mod lists;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::schema::{Patch, Struct, Type, types};
use crate::status::Status;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList";

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The patch schema of a value.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Struct(&'static Struct),
    Other(&'static Type),
    /// An object of a kind without a type: only its metadata is known.
    Object,
    Unknown,
}

impl Shape {
    fn of(of: &'static Type) -> Self {
        if let Type::Struct(id) = of { Self::Struct(types().get(*id)) } else { Self::Other(of) }
    }

    /// The shape of a field, and how lists in it are patched.
    fn field(self, name: &str) -> Result<(Self, Patch), Status> {
        match self {
            Self::Struct(of) => match of.field(name) {
                Some(field) => Ok((Self::of(&field.of), field.patch)),
                None => Err(failed(format!(
                    "unable to find api field in struct {} for the json field {name:?}",
                    of.name.rsplit('.').next().unwrap_or_default()
                ))),
            },
            Self::Other(Type::Map(values)) => Ok((Self::of(values), Patch::default())),
            Self::Object if name == "metadata" => {
                Ok((types().named(METADATA).map_or(Self::Unknown, Self::Struct), Patch::default()))
            }
            Self::Other(_) | Self::Object | Self::Unknown => Ok((Self::Unknown, Patch::default())),
        }
    }

    /// The shape of a list's items.
    fn item(self) -> Self {
        if let Self::Other(Type::List(item)) = self { Self::of(item) } else { Self::Unknown }
    }
}

/// Merges `patch` into an object of a type.
///
/// # Errors
/// 400 or 500 if directives are invalid, as in upstream.
pub(crate) fn merge(
    object: &mut Map<String, Value>,
    patch: Map<String, Value>,
    of: Option<&'static Struct>,
) -> Result<(), Status> {
    merge_map(object, patch, of.map_or(Shape::Object, Shape::Struct))
}

fn merge_map(target: &mut Map<String, Value>, mut patch: Map<String, Value>, shape: Shape) -> Result<(), Status> {
    if let Some(directive) = patch.get(PATCH) {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                *target = patch;
            }
            Some("delete") => target.clear(),
            Some(_) | None => return Err(unknown_directive(directive, &patch)),
        }
        return Ok(());
    }
    retain_keys(target, &mut patch)?;
    let ordered: Vec<String> = patch.keys().filter(|field| field.starts_with(SET_ORDER)).cloned().collect();
    for field in ordered {
        let order = patch.remove(&field).unwrap_or_default();
        let list = named(&field, SET_ORDER, "invalid patch format of setElementOrder list")?;
        let (shape, how) = shape.field(list)?;
        let given = patch.remove(list);
        lists::merge_in_order(target, list, given, order, shape.item(), how)?;
    }
    for (field, value) in patch {
        if field.starts_with(DELETE_VALUES) {
            let list = named(&field, DELETE_VALUES, "invalid patch format of primitive list")?;
            remove_values(target, list, value, shape)?;
        } else {
            merge_field(target, field, value, shape)?;
        }
    }
    Ok(())
}

fn merge_field(target: &mut Map<String, Value>, field: String, value: Value, shape: Shape) -> Result<(), Status> {
    match (target.get_mut(&field), value) {
        (_, Value::Null) => drop(target.remove(&field)),
        (Some(Value::Object(known)), Value::Object(patch)) => merge_map(known, patch, shape.field(&field)?.0)?,
        (Some(Value::Array(known)), Value::Array(items)) => {
            let (shape, how) = shape.field(&field)?;
            *known = if how.merge { lists::merge(std::mem::take(known), items, shape.item(), how.key)? } else { items };
        }
        (_, value) => match without_directives(without_nulls(value)) {
            Some(value) => drop(target.insert(field, value)),
            None => drop(target.remove(&field)),
        },
    }
    Ok(())
}

/// Takes values from a list of plain values.
fn remove_values(target: &mut Map<String, Value>, list: &str, value: Value, shape: Shape) -> Result<(), Status> {
    match (target.get_mut(list), value) {
        (_, Value::Null) => drop(target.remove(list)),
        (Some(Value::Array(known)), Value::Array(removed)) => {
            if known.iter().chain(&removed).any(Value::is_object) {
                let (shape, how) = shape.field(list)?;
                *known = lists::merge(std::mem::take(known), removed, shape.item(), how.key)?;
            } else {
                let removed: HashSet<&Value> = removed.iter().collect();
                known.retain(|item| !removed.contains(item));
            }
        }
        _ => {}
    }
    Ok(())
}

fn retain_keys(target: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Status> {
    let Some(kept) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let ill_formed = || Status::bad_request("invalid patch format of retainKeys");
    let kept = kept.as_array().ok_or_else(ill_formed)?;
    let kept: HashSet<&str> = kept.iter().filter_map(Value::as_str).collect();
    let is_kept = |field: &String| kept.contains(field.as_str());
    if patch.iter().any(|(field, value)| !value.is_null() && !is_directive(field) && !is_kept(field)) {
        return Err(ill_formed());
    }
    target.retain(|field, _| is_kept(field));
    Ok(())
}

fn is_directive(field: &str) -> bool {
    [RETAIN_KEYS, DELETE_VALUES, SET_ORDER].iter().any(|directive| field.starts_with(directive))
}

/// The list that a directive is about: `$directive/list`.
fn named<'a>(field: &'a str, directive: &str, ill_formed: &str) -> Result<&'a str, Status> {
    field.strip_prefix(directive).and_then(|rest| rest.strip_prefix('/')).ok_or_else(|| Status::bad_request(ill_formed))
}

/// A value as it is taken over whole: maps with a `$patch` are only directives.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(field, _)| !is_directive(field));
            let kept = kept.filter_map(|(field, value)| Some((field, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(field, value)| (field, without_nulls(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The error for an invalid patch, which upstream returns without a specific code.
fn failed(message: impl Into<String>) -> Status {
    Status::new(500, "", message)
}

fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Status {
    let directive = match directive {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => format!("%!s(float64={number})"),
        Value::Number(number) => format!("%!s(int64={number})"),
        Value::Bool(it) => format!("%!s(bool={it})"),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Array(_) | Value::Object(_) => as_upstream_prints(directive),
    };
    failed(format!("unknown patch type: {directive} in map: {}", print_map(map)))
}

/// Formats a value as in upstream's error messages.
fn as_upstream_prints(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => print_list(items),
        Value::Object(map) => print_map(map),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn print_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(as_upstream_prints).collect::<Vec<_>>().join(" "))
}

fn print_map(map: &Map<String, Value>) -> String {
    let mut fields: Vec<String> =
        map.iter().map(|(field, value)| format!("{field}:{}", as_upstream_prints(value))).collect();
    fields.sort();
    format!("map[{}]", fields.join(" "))
}

#[cfg(test)]
mod tests;
