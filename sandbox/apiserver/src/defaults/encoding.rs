//! Objects as the typed API writes them: empty fields by their Go types, quantities in canonical form.

use serde_json::{Map, Value, json};

use crate::quantity;
use crate::schema::{Empty, Field, Struct, Type, Types};

/// Rewrites an object of a known type.
pub(super) fn write(types: &Types, of: &Struct, object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        write_map(types, of, map);
    }
}

fn write_map(types: &Types, of: &Struct, map: &mut Map<String, Value>) {
    map.retain(|name, value| {
        // Decoding has handled fields that the type does not have.
        let Some(field) = of.field(name) else { return true };
        write_value(types, &field.of, value);
        keeps(field, value)
    });
    for field in &of.fields {
        if (field.default.is_some() || matches!(field.empty, Empty::Null | Empty::Zero))
            && !map.contains_key(field.name)
            && let Some(value) = absent(types, field)
        {
            map.insert(field.name.to_owned(), value);
        }
    }
}

fn write_value(types: &Types, of: &Type, value: &mut Value) {
    match of {
        Type::Struct(id) => {
            if let Some(map) = value.as_object_mut() {
                write_map(types, types.get(*id), map);
            }
        }
        Type::List(of) => value.as_array_mut().into_iter().flatten().for_each(|item| write_value(types, of, item)),
        Type::Map(of) => {
            // Maps of strings, such as labels, stay as they are.
            if **of == Type::Quantity {
                value.as_object_mut().into_iter().flatten().for_each(|(_, amount)| write_quantity(amount, MILLI));
            } else if **of != Type::String {
                value.as_object_mut().into_iter().flatten().for_each(|(_, item)| write_value(types, of, item));
            }
        }
        Type::Quantity => write_quantity(value, NANO),
        Type::String
        | Type::Int32
        | Type::Int64
        | Type::Number
        | Type::Bool
        | Type::Bytes
        | Type::Time
        | Type::IntOrString
        | Type::Any => {}
    }
}

/// The finest steps of amounts, in billionths: of single ones, and of those in lists of resources.
const NANO: i128 = 1;
const MILLI: i128 = 1_000_000;

fn write_quantity(value: &mut Value, step: i128) {
    let canonical = match &*value {
        Value::String(text) => quantity::canonical(text, step),
        Value::Number(number) => Some(quantity::canonical(&number.to_string(), step).unwrap_or(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    if let Some(text) = canonical {
        *value = Value::String(text);
    }
}

/// Returns `true` if the present value of a field is written.
fn keeps(field: &Field, value: &Value) -> bool {
    let is_empty = match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(field.of, Type::Map(_)),
    };
    let is_scalar = !matches!(field.of, Type::List(_) | Type::Map(_));
    !is_empty
        || field.of == Type::Any
        || field.default.as_ref() == Some(value) && field.empty != Empty::Omitted
        || (is_scalar && !value.is_null() && matches!(field.empty, Empty::Kept | Empty::Zero | Empty::Null))
}

/// Returns the value that is written for an absent field.
fn absent(types: &Types, field: &Field) -> Option<Value> {
    if let Some(default) = &field.default {
        let mut value = default.clone();
        write_value(types, &field.of, &mut value);
        let is_zero = matches!(&value, Value::String(text) if text.is_empty()) || value == 0 || value == false;
        return (!is_zero || field.empty != Empty::Omitted).then_some(value);
    }
    match field.empty {
        Empty::Null => Some(Value::Null),
        Empty::Zero => Some(if field.of == Type::Quantity { json!("0") } else { json!(0) }),
        Empty::Default | Empty::Omitted | Empty::Kept => None,
    }
}
