//! The values of settings, and their spelling in flags and variables.

mod kind;
mod parse;
mod quantity;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use kcm_api::Quantity;
use serde::{Deserialize, Serialize};

use crate::duration::GoDuration;

pub use kind::Kind;
pub(crate) use parse::parse_bool;
pub use quantity::WrittenQuantity;

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Value of type [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Int32`] and [`Kind::Level`].
    Int32(i32),
    /// Value of type [`Kind::Int`].
    Int(i64),
    /// Value of type [`Kind::Float32`].
    Float32(f32),
    /// Value of type [`Kind::Float64`].
    Float64(f64),
    /// Value of type [`Kind::Duration`].
    Duration(GoDuration),
    /// Value of type [`Kind::String`].
    String(String),
    /// Value of type [`Kind::Strings`], and of [`Kind::FeatureGates`] as one `Gate=bool` per item.
    Strings(Vec<String>),
    /// Value of type [`Kind::Int32s`].
    Int32s(Vec<i32>),
    /// Value of type [`Kind::Ip`].
    Ip(IpAddr),
    /// Value of type [`Kind::Map`].
    Map(BTreeMap<String, String>),
    /// Value of type [`Kind::CertKeys`].
    CertKeys(Vec<CertKey>),
    /// Value of type [`Kind::Quantity`].
    Quantity(WrittenQuantity),
    /// Value of type [`Kind::ModuleLevels`].
    ModuleLevels(Vec<ModuleLevel>),
    /// Of [`Kind::Objects`]: the fields of each item.
    Objects(Vec<BTreeMap<String, String>>),
}

/// The files of a certificate and its key, and the names of the hosts that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertKey {
    /// The file with the certificate.
    pub cert: String,
    /// The file with its private key.
    pub key: String,
    /// Host names, wildcards included. If there are none, the names in the certificate count.
    pub names: Vec<String>,
}

impl fmt::Display for CertKey {
    /// Writes the form `CERT,KEY:NAME,NAME`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.cert, self.key)?;
        if self.names.is_empty() { Ok(()) } else { write!(f, ":{}", self.names.join(",")) }
    }
}

/// Verbosity of the modules with names that match a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleLevel {
    /// The pattern, with `*` and `?`.
    pub pattern: String,
    /// The verbosity; not negative.
    pub level: i32,
}

impl fmt::Display for ModuleLevel {
    /// Writes the form `pattern=N`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.pattern, self.level)
    }
}

impl Value {
    /// Joins this value with a later value of the same source: lists and maps grow, for other types the last value
    /// counts.
    #[must_use]
    pub(crate) fn and(self, more: Self) -> Self {
        match (self, more) {
            (Self::Strings(items), Self::Strings(more)) => Self::Strings(joined(items, more)),
            (Self::Int32s(items), Self::Int32s(more)) => Self::Int32s(joined(items, more)),
            (Self::CertKeys(items), Self::CertKeys(more)) => Self::CertKeys(joined(items, more)),
            (Self::ModuleLevels(items), Self::ModuleLevels(more)) => Self::ModuleLevels(joined(items, more)),
            (Self::Map(mut pairs), Self::Map(more)) => {
                pairs.extend(more);
                Self::Map(pairs)
            }
            (_, more) => more,
        }
    }
}

fn joined<T>(mut items: Vec<T>, more: Vec<T>) -> Vec<T> {
    items.extend(more);
    items
}

impl fmt::Display for Value {
    /// The value as a flag accepts it: parsing it returns an equal value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int32(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float32(value) => value.fmt(f),
            Self::Float64(value) => value.fmt(f),
            Self::Duration(value) => value.fmt(f),
            Self::String(value) => value.fmt(f),
            Self::Ip(value) => value.fmt(f),
            Self::Quantity(value) => value.fmt(f),
            Self::Strings(items) => f.write_str(&csv(items)),
            Self::Int32s(items) => f.write_str(&separated(items, ",")),
            Self::CertKeys(items) => f.write_str(&separated(items, ";")),
            Self::ModuleLevels(items) => f.write_str(&separated(items, ",")),
            Self::Map(pairs) => f.write_str(&csv(&self::pairs(pairs))),
            Self::Objects(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("{{{}}}", pairs(item).join(","))).collect();
                f.write_str(&items.join(","))
            }
        }
    }
}

fn separated(items: &[impl ToString], separator: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<String> {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

fn csv(items: &[String]) -> String {
    let fields: Vec<String> = items.iter().map(|item| csv_field(item, items.len() == 1)).collect();
    fields.join(",")
}

fn csv_field(item: &str, is_alone: bool) -> String {
    let lone_empty = item.is_empty() && is_alone;
    if lone_empty || item.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", item.replace('"', "\"\""))
    } else {
        item.to_owned()
    }
}

/// A Rust type for settings of one kind.
pub trait FromValue: Sized {
    /// The value as this type, `None` when the setting is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($variant:ident => $target:ty, $convert:expr;)*) => {$(
        impl FromValue for $target {
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::$variant(inner) = value { Some($convert(inner)) } else { None }
            }
        }
    )*};
}

from_value! {
    Bool => bool, Clone::clone;
    Int32 => i32, Clone::clone;
    Int => i64, Clone::clone;
    Float32 => f32, Clone::clone;
    Float64 => f64, Clone::clone;
    Duration => GoDuration, Clone::clone;
    Duration => Duration, |duration: &GoDuration| duration.unsigned();
    String => String, Clone::clone;
    Strings => Vec<String>, Clone::clone;
    Int32s => Vec<i32>, Clone::clone;
    Ip => IpAddr, Clone::clone;
    Map => BTreeMap<String, String>, Clone::clone;
    CertKeys => Vec<CertKey>, Clone::clone;
    Quantity => Quantity, |quantity: &WrittenQuantity| quantity.amount().clone();
    ModuleLevels => Vec<ModuleLevel>, Clone::clone;
}
