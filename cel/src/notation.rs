//! The notation of types and declarations.

use std::str::FromStr;
use std::sync::Arc;

use crate::types::{Primitive, Type};

/// A declaration or a type that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The part that is not understood.
    pub text: String,
}

impl std::fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot read the declaration in line {}: {:?} is no type", self.line, self.text)
    }
}

impl std::error::Error for DeclarationError {}

/// One signature of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overload {
    /// `true` if the first argument is written before the dot.
    pub member: bool,
    /// Types of the arguments, the receiver first.
    pub arguments: Vec<Type>,
    /// Type of the result.
    pub result: Type,
    pub(crate) parameters: Vec<Arc<str>>,
}

impl Overload {
    /// Returns a signature. Parameters are named by [`Type::Param`].
    #[must_use]
    pub fn new(member: bool, arguments: Vec<Type>, result: Type) -> Self {
        let mut parameters = Vec::new();
        for each in arguments.iter().chain([&result]) {
            collect(each, &mut parameters);
        }
        Self { member, arguments, result, parameters }
    }
}

fn collect(of: &Type, found: &mut Vec<Arc<str>>) {
    if let Type::Param(name) = of
        && !found.contains(name)
    {
        found.push(Arc::clone(name));
    }
    of.inner().for_each(|inner| collect(inner, found));
}

/// Depth that a type in a declaration may have.
const MAX_DEPTH: usize = 32;

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).is_some_and(|rest| {
            self.rest = rest.trim_start_matches(' ');
            true
        })
    }

    fn name(&mut self) -> Option<&'a str> {
        let end = self.rest.find(['(', ')', ',', ' ']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        // The dot between a receiver and the arguments belongs to neither.
        let (name, rest) = match name.strip_suffix('.') {
            Some(name) => (name, &self.rest[end - 1..]),
            None => (name, rest),
        };
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Type>> {
        let mut types = Vec::new();
        if self.eat(")") {
            return Some(types);
        }
        loop {
            types.push(self.one(depth + 1)?);
            if self.eat(")") {
                return Some(types);
            }
            if !self.eat(",") {
                return None;
            }
        }
    }

    fn one(&mut self, depth: usize) -> Option<Type> {
        if depth > MAX_DEPTH {
            return None;
        }
        let name = self.name()?;
        let parameters = if self.rest.starts_with('(') && self.eat("(") { Some(self.list(depth)?) } else { None };
        Some(match (name, parameters.as_deref()) {
            ("dyn", None) => Type::Dyn,
            ("any", None) => Type::Any,
            ("!error!", None) => Type::Error,
            ("null", None) => Type::Null,
            ("bool", None) => Type::Bool,
            ("int", None) => Type::Int,
            ("uint", None) => Type::Uint,
            ("double", None) => Type::Double,
            ("string", None) => Type::String,
            ("bytes", None) => Type::Bytes,
            ("duration", None) => Type::Duration,
            ("timestamp", None) => Type::Timestamp,
            ("type", None) => Type::Type(None),
            ("type", Some([inner])) => inner.clone().of_type(),
            ("list", Some([element])) => Type::list(element.clone()),
            ("map", Some([key, value])) => Type::map(key.clone(), value.clone()),
            ("wrapper", Some([inner])) => Type::Wrapper(primitive(inner)?),
            (name, None) if name.len() == 1 && name.as_bytes()[0].is_ascii_uppercase() => Type::Param(name.into()),
            (name, None) => Type::object(name),
            (name, Some(parameters)) => Type::Opaque(name.into(), parameters.into()),
        })
    }
}

fn primitive(of: &Type) -> Option<Primitive> {
    match of {
        Type::Bool => Some(Primitive::Bool),
        Type::Bytes => Some(Primitive::Bytes),
        Type::Double => Some(Primitive::Double),
        Type::Int => Some(Primitive::Int),
        Type::String => Some(Primitive::String),
        Type::Uint => Some(Primitive::Uint),
        Type::Dyn
        | Type::Any
        | Type::Error
        | Type::Null
        | Type::Duration
        | Type::Timestamp
        | Type::Wrapper(_)
        | Type::List(_)
        | Type::Map(..)
        | Type::Struct(_)
        | Type::Opaque(..)
        | Type::Type(_)
        | Type::Param(_) => None,
    }
}

impl FromStr for Type {
    type Err = DeclarationError;

    fn from_str(text: &str) -> Result<Self, DeclarationError> {
        let mut reader = Reader { rest: text.trim() };
        let read = reader.one(0).filter(|_| reader.rest.is_empty());
        read.ok_or_else(|| DeclarationError { line: 1, text: text.to_owned() })
    }
}

/// Reads declarations, one signature in each line: `name: (int, list(A)) -> A`, or `name: string.(int) -> bool` for a
/// member. Lines that are empty or begin with `#` are skipped.
pub(crate) fn declarations(text: &str) -> Result<Vec<(&str, Overload)>, DeclarationError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let rows = lines.map(|(at, line)| {
        let read = line.split_once(": ").and_then(|(name, signature)| Some((name.trim(), overload(signature.trim())?)));
        read.ok_or_else(|| DeclarationError { line: at + 1, text: line.to_owned() })
    });
    rows.collect()
}

fn overload(signature: &str) -> Option<Overload> {
    let mut reader = Reader { rest: signature };
    let mut arguments = Vec::new();
    let member = !reader.eat("(");
    if member {
        arguments.push(reader.one(0)?);
        if !reader.eat(".(") {
            return None;
        }
    }
    arguments.extend(reader.list(0)?);
    let result = if reader.eat("->") { reader.one(0)? } else { return None };
    reader.rest.is_empty().then(|| Overload::new(member, arguments, result))
}
