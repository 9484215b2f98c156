//! [`Shape`]: the schema of a value for field ownership. Pure.
//!
//! # Upstream
//! `structured-merge-diff/schema`, and `kube-openapi/pkg/schemaconv`, which makes it from OpenAPI

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::element;
use crate::kinds::Kind;
use crate::schema::{Empty, Field, ListKind, Struct, Type, types};

static NULL: Value = Value::Null;
static ZERO: LazyLock<Value> = LazyLock::new(|| 0.into());
static NOTHING: LazyLock<Value> = LazyLock::new(|| "0".into());

/// The ownership granularity within a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// As a whole: scalars, atomic maps, lists and structs.
    Leaf,
    /// Field by field; the fields are known, and those that the API server always writes count as being there.
    Struct(&'static Struct),
    /// Entry by entry, all of one type.
    Map(&'static Type),
    /// Item by item, keyed by value (set).
    Set,
    /// Item by item, by their keys (map list).
    ByKey(&'static [&'static str], &'static Type),
    /// No type is known: maps entry by entry, lists and scalars as a whole.
    Deduced,
    /// A custom resource: its metadata is known, the rest is deduced.
    Custom,
}

impl Shape {
    /// The shape of the objects of a kind.
    pub(crate) fn of_kind(kind: &Kind) -> Self {
        Self::of_version(&kind.resource.group, &kind.resource.version, &kind.resource.kind)
    }

    /// Returns the shape of the objects of a kind. A kind without a type has the shape of custom resources.
    pub(crate) fn of_version(group: &str, version: &str, kind: &str) -> Self {
        types().of_kind(group, version, kind).map_or(Self::Custom, Self::Struct)
    }

    fn of_type(of: &'static Type) -> Self {
        match of {
            Type::Struct(id) => {
                let found = types().get(*id);
                if found.atomic { Self::Leaf } else { Self::Struct(found) }
            }
            Type::Map(of) => Self::Map(of),
            Type::List(_)
            | Type::String
            | Type::Int32
            | Type::Int64
            | Type::Number
            | Type::Bool
            | Type::Bytes
            | Type::Time
            | Type::Quantity
            | Type::IntOrString
            | Type::Any => Self::Leaf,
        }
    }

    fn of_field(field: &'static Field) -> Self {
        match (&field.of, &field.list) {
            _ if field.atomic => Self::Leaf,
            (Type::List(_), ListKind::Set) => Self::Set,
            (Type::List(item), ListKind::Map(keys)) => Self::ByKey(keys, item),
            (of, _) => Self::of_type(of),
        }
    }

    /// Returns the shape of a field's value, and `true` if the type declares the field.
    pub(crate) fn field(self, name: &str) -> (Self, bool) {
        match self {
            Self::Struct(of) => of.field(name).map_or((Self::Deduced, false), |field| (Self::of_field(field), true)),
            Self::Map(of) => (Self::of_type(of), false),
            Self::Custom => match name {
                "apiVersion" | "kind" => (Self::Leaf, true),
                "metadata" => (types().named(OBJECT_META).map_or(Self::Deduced, Self::Struct), true),
                _ => (Self::Deduced, false),
            },
            Self::Deduced => (Self::Deduced, false),
            Self::Leaf | Self::Set | Self::ByKey(..) => (Self::Leaf, false),
        }
    }

    /// The shape of the items of a list that is not a leaf.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::ByKey(_, item) => Self::of_type(item),
            Self::Leaf | Self::Struct(_) | Self::Map(_) | Self::Set | Self::Deduced | Self::Custom => Self::Leaf,
        }
    }

    /// Returns how a value of this shape is walked.
    pub(crate) fn form(self, value: &Value) -> Form {
        match self {
            Self::Struct(_) | Self::Map(_) | Self::Custom => Form::Map,
            Self::Set | Self::ByKey(..) => Form::List,
            Self::Deduced if value.is_object() => Form::Map,
            Self::Deduced | Self::Leaf => Form::Leaf,
        }
    }

    /// Returns the fields that every object of this shape has, with their values if they are absent.
    pub(crate) fn implied(self) -> impl Iterator<Item = (&'static str, &'static Value)> {
        let fields: &[Field] = if let Self::Struct(of) = self { &of.fields } else { &[] };
        fields.iter().filter_map(|field| Some((field.name, implied(field)?)))
    }

    /// Returns the element that names an item of a list that is not a leaf; `None` if the item lacks its keys.
    pub(crate) fn element(self, item: &Value) -> Option<String> {
        match self {
            Self::Set => {
                let scalar = !(item.is_object() || item.is_array() || item.is_null());
                scalar.then(|| element::value(item))
            }
            Self::ByKey(keys, of) => {
                let item = item.as_object()?;
                let of = if let Type::Struct(id) = of { Some(types().get(*id)) } else { None };
                let found: Map<String, Value> = keys
                    .iter()
                    .filter_map(|key| {
                        let default = || of?.field(key)?.default.as_ref();
                        let value = item.get(*key).filter(|value| !value.is_null()).or_else(default)?;
                        Some(((*key).to_owned(), value.clone()))
                    })
                    .collect();
                (!found.is_empty()).then(|| element::key(found))
            }
            Self::Leaf | Self::Struct(_) | Self::Map(_) | Self::Deduced | Self::Custom => None,
        }
    }
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The way in which a value is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Leaf,
    Map,
    List,
}

/// Returns the value that the API server writes for an absent field, if any.
fn implied(field: &'static Field) -> Option<&'static Value> {
    match field.empty {
        Empty::Default => field.default.as_ref(),
        Empty::Null => Some(&NULL),
        Empty::Zero if field.of == Type::Quantity => Some(&NOTHING),
        Empty::Zero => Some(&ZERO),
        Empty::Omitted | Empty::Kept => None,
    }
}
