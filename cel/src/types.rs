//! Types, their names in messages, and the notation in which declarations write them.

use std::fmt::{self, Write};
use std::sync::Arc;

/// A type that also has a variant which accepts null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Primitive {
    /// The values `true` and `false`.
    Bool,
    /// Strings of bytes of any value.
    Bytes,
    /// Floating point numbers of 64 bits.
    Double,
    /// Signed integers of 64 bits.
    Int,
    /// Strings of code points.
    String,
    /// Unsigned integers of 64 bits.
    Uint,
}

/// A type of an expression, a variable, an argument or a field.
///
/// `Display` writes the name that cel-go uses in messages. [`std::str::FromStr`] reads the same notation, with two
/// additions: a single capital letter is a type parameter, and an opaque type has parentheses even without parameters.
///
/// ```
/// use kcm_cel::Type;
///
/// let labels: Type = "map(string, string)".parse()?;
/// assert_eq!(labels, Type::map(Type::String, Type::String));
/// assert_eq!(labels.to_string(), "map(string, string)");
/// # Ok::<(), kcm_cel::DeclarationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Any value, known when the expression is evaluated.
    Dyn,
    /// The protobuf message that holds any other message.
    Any,
    /// The type of an expression with a problem.
    Error,
    /// The type of null.
    Null,
    /// The values `true` and `false`.
    Bool,
    /// Signed integers of 64 bits.
    Int,
    /// Unsigned integers of 64 bits.
    Uint,
    /// Floating point numbers of 64 bits.
    Double,
    /// Strings of code points.
    String,
    /// Strings of bytes of any value.
    Bytes,
    /// Lengths of time in nanoseconds.
    Duration,
    /// Points in time in nanoseconds.
    Timestamp,
    /// A primitive type that accepts null.
    Wrapper(Primitive),
    /// Lists with the type of their elements.
    List(Arc<Type>),
    /// Maps with the types of their keys and values.
    Map(Arc<Type>, Arc<Type>),
    /// A message or object whose fields a [`TypeProvider`](crate::TypeProvider) knows.
    Struct(Arc<str>),
    /// A type without visible parts, with its type parameters.
    Opaque(Arc<str>, Arc<[Type]>),
    /// The type of a type, with that type if it is known.
    Type(Option<Arc<Type>>),
    /// A parameter of a declaration, with its name.
    Param(Arc<str>),
}

pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    /// Returns the type of lists of an element type.
    #[must_use]
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    /// Returns the type of maps from keys to values.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// Returns the type of optional values of a type.
    #[must_use]
    pub fn optional(content: Self) -> Self {
        Self::Opaque(OPTIONAL.into(), [content].into())
    }

    /// Returns the type of an object with a name. The names of protobuf's well-known messages give their types.
    #[must_use]
    pub fn object(name: &str) -> Self {
        well_known(name).unwrap_or_else(|| Self::Struct(name.into()))
    }

    /// Returns the type of a type.
    #[must_use]
    pub fn of_type(self) -> Self {
        Self::Type(Some(Arc::new(self)))
    }

    /// Returns the name of the type without its parameters, as values of the type report it.
    #[must_use]
    pub fn runtime_name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Any => "google.protobuf.Any",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool | Self::Wrapper(Primitive::Bool) => "bool",
            Self::Int | Self::Wrapper(Primitive::Int) => "int",
            Self::Uint | Self::Wrapper(Primitive::Uint) => "uint",
            Self::Double | Self::Wrapper(Primitive::Double) => "double",
            Self::String | Self::Wrapper(Primitive::String) => "string",
            Self::Bytes | Self::Wrapper(Primitive::Bytes) => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Type(_) => "type",
            Self::Struct(name) | Self::Opaque(name, _) | Self::Param(name) => name,
        }
    }

    /// Returns the type without the acceptance of null.
    pub(crate) fn plain(&self) -> &Self {
        let Self::Wrapper(primitive) = self else { return self };
        match primitive {
            Primitive::Bool => &Self::Bool,
            Primitive::Int => &Self::Int,
            Primitive::Uint => &Self::Uint,
            Primitive::Double => &Self::Double,
            Primitive::String => &Self::String,
            Primitive::Bytes => &Self::Bytes,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || matches!(self, Self::Error)
    }

    /// Returns the content of an optional type.
    pub(crate) fn content(&self) -> Option<&Self> {
        let Self::Opaque(name, parameters) = self else { return None };
        (&**name == OPTIONAL).then(|| parameters.first()).flatten()
    }

    /// Returns the types in the parentheses of this type.
    pub(crate) fn inner(&self) -> impl Iterator<Item = &Self> {
        let (first, second, others): (Option<&Self>, Option<&Self>, &[Self]) = match self {
            Self::List(element) => (Some(element), None, &[]),
            Self::Map(key, value) => (Some(key), Some(value), &[]),
            Self::Opaque(_, parameters) => (None, None, parameters),
            Self::Type(Some(inner)) => (Some(inner), None, &[]),
            Self::Dyn
            | Self::Any
            | Self::Error
            | Self::Null
            | Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::Duration
            | Self::Timestamp
            | Self::Wrapper(_)
            | Self::Struct(_)
            | Self::Type(None)
            | Self::Param(_) => (None, None, &[]),
        };
        first.into_iter().chain(second).chain(others)
    }

    fn write(&self, out: &mut Bounded<'_, '_>) -> fmt::Result {
        match self {
            Self::Any => out.write_str("any"),
            Self::Error => out.write_str("!error!"),
            Self::Null => out.write_str("null"),
            Self::Duration => out.write_str("duration"),
            Self::Timestamp => out.write_str("timestamp"),
            Self::Wrapper(_) => write!(out, "wrapper({})", self.runtime_name()),
            Self::List(element) => out.parameters("list", [&**element]),
            Self::Map(key, value) => out.parameters("map", [&**key, &**value]),
            Self::Type(Some(inner)) => out.parameters("type", [&**inner]),
            Self::Opaque(name, parameters) if !parameters.is_empty() => out.parameters(name, parameters.iter()),
            Self::Dyn
            | Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::Struct(_)
            | Self::Opaque(..)
            | Self::Type(None)
            | Self::Param(_) => out.write_str(self.runtime_name()),
        }
    }
}

/// Length of a type's name from which on it is cut. Types share their parts, so a short expression may have a name
/// that is longer than memory.
const MAX_NAME: usize = 64 * 1024;

struct Bounded<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    left: usize,
}

impl Write for Bounded<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.left.checked_sub(text.len());
        self.left = left.unwrap_or(0);
        if left.is_some() { self.to.write_str(text) } else { Ok(()) }
    }
}

impl Bounded<'_, '_> {
    fn parameters<'t>(&mut self, name: &str, types: impl IntoIterator<Item = &'t Type>) -> fmt::Result {
        self.write_str(name)?;
        for (i, parameter) in types.into_iter().enumerate() {
            if self.left == 0 {
                return Ok(());
            }
            self.write_str(if i == 0 { "(" } else { ", " })?;
            parameter.write(self)?;
        }
        self.write_str(")")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(&mut Bounded { to: f, left: MAX_NAME })
    }
}

/// Returns the type that stands for one of protobuf's well-known messages.
fn well_known(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("google.protobuf.")? {
        "BoolValue" => Type::Wrapper(Primitive::Bool),
        "BytesValue" => Type::Wrapper(Primitive::Bytes),
        "DoubleValue" | "FloatValue" => Type::Wrapper(Primitive::Double),
        "Int64Value" | "Int32Value" => Type::Wrapper(Primitive::Int),
        "UInt64Value" | "UInt32Value" => Type::Wrapper(Primitive::Uint),
        "StringValue" => Type::Wrapper(Primitive::String),
        "Any" => Type::Any,
        "Duration" => Type::Duration,
        "Timestamp" => Type::Timestamp,
        "ListValue" => Type::list(Type::Dyn),
        "NullValue" => Type::Null,
        "Struct" => Type::map(Type::String, Type::Dyn),
        "Value" => Type::Dyn,
        _ => return None,
    })
}
