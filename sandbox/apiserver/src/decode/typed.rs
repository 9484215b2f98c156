//! From JSON to the value that a typed API server holds: fields are checked, and unknown ones and nulls fall away. The
//! form of empty fields is decided later, when an object is stored.

use serde_json::{Map, Number, Value};

use super::field_path::{FieldPath, note};
use super::time::{self, Precision};
use crate::schema::{Struct, Type, Types};

/// A reader of one object.
pub(super) struct Typed {
    types: &'static Types,
    /// Fields that the table does not know stay, without a message.
    keep_unknown: bool,
    path: FieldPath,
    /// A message for each field that the table does not know.
    unknown: Vec<String>,
}

impl Typed {
    pub(super) fn new(types: &'static Types, keep_unknown: bool) -> Self {
        Self { types, keep_unknown, path: FieldPath::default(), unknown: Vec::new() }
    }

    /// Reads an object of a known type; returns it with the messages about unknown fields.
    ///
    /// # Errors
    ///
    /// The first value of a wrong type, with its path.
    pub(super) fn object(mut self, of: &'static Struct, value: Value) -> Result<(Value, Vec<String>), String> {
        let value = self.structure(of, value)?.unwrap_or_else(|| Value::Object(Map::new()));
        Ok((value, self.unknown))
    }

    /// Reads an object whose type is not known: only its metadata is checked.
    ///
    /// # Errors
    ///
    /// As [`Typed::object`].
    pub(super) fn untyped(
        mut self,
        metadata: &'static Struct,
        mut value: Value,
    ) -> Result<(Value, Vec<String>), String> {
        let Some(object) = value.as_object_mut() else { return Err(self.mismatch("an object", &value)) };
        if let Some(given) = object.get_mut("metadata") {
            let length = self.path.enter("metadata");
            let read = self.structure(metadata, given.take())?;
            self.path.leave(length);
            *given = read.unwrap_or_else(|| Value::Object(Map::new()));
        }
        Ok((value, self.unknown))
    }

    /// Reads a value; `None` if it is null. `go` is the name of the Go type, if the table has one.
    fn value(&mut self, of: &Type, go: Option<&str>, value: Value) -> Result<Option<Value>, String> {
        let read = match (of, value) {
            (_, Value::Null) => return Ok(None),
            (Type::Any, value) => Some(value),
            (Type::Struct(id), value) => return self.structure(self.types.get(*id), value),
            (Type::List(item), Value::Array(items)) => Some(self.list(item, item_name(go), items)?),
            (Type::Map(item), Value::Object(entries)) => Some(self.map(item, value_name(go), entries)?),
            (Type::Time, Value::String(text)) => {
                let is_micro = go.is_some_and(|name| name.ends_with("MicroTime"));
                let precision = if is_micro { Precision::Microseconds } else { Precision::Seconds };
                let time = time::normalize(&text, precision);
                return time.map(|time| Some(time.into())).ok_or_else(|| self.misfit("a time of RFC 3339", &text));
            }
            (Type::Quantity, Value::String(text)) => Some(self.quantity(&text)?),
            (Type::Quantity, Value::Number(number)) => Some(self.quantity(&number.to_string())?),
            (Type::Bytes, Value::String(text)) => {
                let text = text.replace(['\r', '\n'], "");
                if !is_base64(&text) {
                    return Err(self.misfit("base64", &text));
                }
                Some(text.into())
            }
            (Type::String | Type::IntOrString, value @ Value::String(_)) | (Type::Bool, value @ Value::Bool(_)) => {
                Some(value)
            }
            (Type::Int32 | Type::IntOrString, Value::Number(number)) if is_int32(&number) => Some(number.into()),
            (Type::Int64, Value::Number(number)) if number.is_i64() => Some(number.into()),
            (Type::Number, Value::Number(number)) => number.as_f64().and_then(Number::from_f64).map(Value::Number),
            (
                Type::String
                | Type::Int32
                | Type::Int64
                | Type::Number
                | Type::Bool
                | Type::Bytes
                | Type::Time
                | Type::Quantity
                | Type::IntOrString
                | Type::List(_)
                | Type::Map(_),
                value,
            ) => return Err(self.mismatch(word_of(of), &value)),
        };
        Ok(read)
    }

    fn structure(&mut self, of: &'static Struct, value: Value) -> Result<Option<Value>, String> {
        let entries = match value {
            Value::Null => return Ok(None),
            Value::Object(entries) => entries,
            value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(self.mismatch("an object", &value));
            }
        };
        let mut object = Map::new();
        for (key, value) in entries {
            let length = self.path.enter(&key);
            if let Some(field) = of.field(&key) {
                if let Some(value) = self.value(&field.of, field.go, value)? {
                    object.insert(key, value);
                }
            } else if !self.keep_unknown {
                note("unknown", &self.path, &mut self.unknown);
            } else if !value.is_null() {
                object.insert(key, value);
            }
            self.path.leave(length);
        }
        Ok(Some(Value::Object(object)))
    }

    fn list(&mut self, item: &Type, go: Option<&str>, items: Vec<Value>) -> Result<Value, String> {
        let mut list = Vec::with_capacity(items.len());
        for (index, value) in items.into_iter().enumerate() {
            let length = self.path.enter_item(index);
            list.push(self.value(item, go, value)?.unwrap_or_else(|| zero(item)));
            self.path.leave(length);
        }
        Ok(Value::Array(list))
    }

    fn map(&mut self, item: &Type, go: Option<&str>, entries: Map<String, Value>) -> Result<Value, String> {
        let mut map = Map::new();
        for (key, value) in entries {
            let length = self.path.enter(&key);
            map.insert(key, self.value(item, go, value)?.unwrap_or_else(|| zero(item)));
            self.path.leave(length);
        }
        Ok(Value::Object(map))
    }

    fn quantity(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        match text.parse::<kcm_api::Quantity>() {
            Ok(_) => Ok(text.into()),
            Err(_) => Err(self.misfit("a quantity", text)),
        }
    }

    fn mismatch(&self, expected: &str, value: &Value) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "a boolean".to_owned(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(_) => "a string".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        self.at(format!("expected {expected}, found {found}"))
    }

    fn misfit(&self, expected: &str, text: &str) -> String {
        self.at(format!("expected {expected}, found {text:?}"))
    }

    fn at(&self, message: String) -> String {
        let path = self.path.to_string();
        if path.is_empty() { message } else { format!("{path}: {message}") }
    }
}

fn is_int32(number: &Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

/// Returns `true` if a text is base64 with padding.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

/// Returns the value of an item that is null.
fn zero(of: &Type) -> Value {
    match of {
        Type::String | Type::Bytes => "".into(),
        Type::Int32 | Type::Int64 | Type::Number | Type::IntOrString => 0.into(),
        Type::Bool => false.into(),
        Type::Quantity => "0".into(),
        Type::Time | Type::Any | Type::List(_) | Type::Map(_) => Value::Null,
        Type::Struct(_) => Value::Object(Map::new()),
    }
}

fn word_of(of: &Type) -> &'static str {
    match of {
        Type::String => "a string",
        Type::Int32 => "an integer of 32 bits",
        Type::Int64 => "an integer of 64 bits",
        Type::Number => "a number",
        Type::Bool => "a boolean",
        Type::Bytes => "base64",
        Type::Time => "a time of RFC 3339",
        Type::Quantity => "a quantity",
        Type::IntOrString => "a string or an integer of 32 bits",
        Type::Any => "a value",
        Type::List(_) => "a list",
        Type::Map(_) | Type::Struct(_) => "an object",
    }
}

/// Returns the type of the items of a list, if the type of the list names it.
fn item_name(list: Option<&str>) -> Option<&str> {
    list?.strip_prefix("[]")
}

/// Returns the type of the values of a map, if the type of the map names it.
fn value_name(map: Option<&str>) -> Option<&str> {
    map?.strip_prefix("map[")?.split_once(']').map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_checked() {
        for text in ["", "YQ==", "YWI=", "YWJj", "//4="] {
            assert!(is_base64(text), "{text}");
        }
        for text in ["!!", "YQ", "YWJjYQ", "YWJ!", "Y===", "YQ==YQ==", "===="] {
            assert!(!is_base64(text), "{text}");
        }
    }
}
