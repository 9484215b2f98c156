//! Literals of lists, maps and messages.

use super::{Checker, undotted};
use crate::ast::{Element, Entry, ExprId, Field};
use crate::types::{Primitive, Type};

impl Checker<'_> {
    pub(super) fn check_list(&mut self, id: ExprId, elements: &[Element]) {
        let mut joined: Option<Type> = None;
        for element in elements {
            self.check(element.value);
            let of = self.value_type(element.value, element.optional);
            joined = Some(self.join(joined, of));
        }
        let joined = joined.unwrap_or_else(|| self.solver.variable());
        self.set(id, Type::list(joined));
    }

    pub(super) fn check_map(&mut self, id: ExprId, entries: &[Entry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(entry.key);
            let key = self.type_of(entry.key);
            keys = Some(self.join(keys, key));
            self.check(entry.value);
            let value = self.value_type(entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let keys = keys.unwrap_or_else(|| self.solver.variable());
        let values = values.unwrap_or_else(|| self.solver.variable());
        self.set(id, Type::map(keys, values));
    }

    /// Returns the type of a value, or the type of its content if the value is written with a question mark.
    fn value_type(&mut self, value: ExprId, optional: bool) -> Type {
        let of = self.type_of(value);
        if !optional {
            return of;
        }
        if let Some(content) = of.content() {
            return content.clone();
        }
        if !of.is_dyn() {
            self.mismatch(value, &Type::optional(of.clone()), &of);
        }
        of
    }

    fn join(&mut self, joined: Option<Type>, of: Type) -> Type {
        match joined {
            None => of,
            Some(joined) if self.solver.assignable(&joined, &of) => self.solver.most_general(&joined, &of),
            Some(_) => Type::Dyn,
        }
    }

    pub(super) fn check_struct(&mut self, id: ExprId, name: &str, fields: &[Field]) {
        let position = self.position(id);
        let Some(of) = self.named_type(undotted(name)) else {
            self.undeclared(id, name);
            return self.set(id, Type::Error);
        };
        let mut type_name = undotted(name).to_owned();
        let mut result = of.clone();
        if let Some(known) = well_known_name(&of) {
            known.clone_into(&mut type_name);
        } else if let Type::Struct(declared) = &of {
            type_name = declared.to_string();
        } else {
            let shown = if matches!(of, Type::Wrapper(_)) { of.to_string() } else { of.runtime_name().to_owned() };
            self.report(position, format!("'{shown}' is not a message type"));
            result = Type::Error;
        }
        self.set(id, result);
        for field in fields {
            self.check(field.value);
            let expected = self.field(field.position, &type_name, &field.name).unwrap_or(Type::Error);
            let found = self.value_type(field.value, field.optional);
            if !self.solver.assignable(&expected, &found) {
                let message =
                    format!("expected type of field '{}' is '{expected}' but provided type is '{found}'", field.name);
                self.report(field.position, message);
            }
        }
    }
}

/// Returns the name of the message for types that stand for one of protobuf's well-known messages.
fn well_known_name(of: &Type) -> Option<&'static str> {
    Some(match of {
        Type::Any => "google.protobuf.Any",
        Type::Duration => "google.protobuf.Duration",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Dyn => "google.protobuf.Value",
        Type::Null => "google.protobuf.NullValue",
        Type::Wrapper(Primitive::Bool) => "google.protobuf.BoolValue",
        Type::Wrapper(Primitive::Bytes) => "google.protobuf.BytesValue",
        Type::Wrapper(Primitive::Double) => "google.protobuf.DoubleValue",
        Type::Wrapper(Primitive::Int) => "google.protobuf.Int64Value",
        Type::Wrapper(Primitive::String) => "google.protobuf.StringValue",
        Type::Wrapper(Primitive::Uint) => "google.protobuf.UInt64Value",
        Type::List(element) if **element == Type::Dyn => "google.protobuf.ListValue",
        Type::Map(key, value) if **key == Type::String && **value == Type::Dyn => "google.protobuf.Struct",
        Type::List(_)
        | Type::Map(..)
        | Type::Error
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Struct(_)
        | Type::Opaque(..)
        | Type::Type(_)
        | Type::Param(_) => return None,
    })
}
