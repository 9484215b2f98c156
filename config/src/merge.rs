//! The merge of the four layers, by figment.

use std::collections::BTreeMap;

use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile, Provider};

use crate::error::{ConfigError, Origin, Warning};
use crate::row::Row;
use crate::value::{CertKey, Value};

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The values of one source, by flag.
pub(crate) type Layer = BTreeMap<&'static str, Entry>;

/// A layer, with the errors and warnings of reading it.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) layer: Layer,
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) warnings: Vec<Warning>,
}

/// The merged values, by flag, and the tree that sections are read from.
pub(crate) struct Merged {
    pub(crate) entries: Layer,
    pub(crate) tree: Figment,
}

/// The layers by name, from the weakest to the strongest.
const LAYERS: [&str; 4] = ["the defaults", "the file", "the environment", "the command line"];

/// Merges file, environment and command line over the defaults. A later source overrides an earlier one.
pub(crate) fn merge(rows: &[Row], [file, environment, command_line]: [Layer; 3]) -> Merged {
    let defaults = rows.iter().map(|row| (row.name, Entry { value: row.initial.value(), origin: Origin::Default }));
    let layers = [defaults.collect(), file, environment, command_line];
    let tree = LAYERS
        .into_iter()
        .zip(&layers)
        .fold(Figment::new(), |tree, (name, entries)| tree.merge(Named { name, entries, rows }));
    let entries = rows.iter().map(|row| {
        let decides = tree.find_metadata(&key_of(row)).map(|metadata| metadata.name.as_ref());
        let number = LAYERS.iter().position(|name| Some(*name) == decides);
        let entry = number.and_then(|number| layers[number].get(row.name));
        (row.name, entry.expect("the defaults have every row, and every value comes from a layer").clone())
    });
    Merged { entries: entries.collect(), tree }
}

/// The path of the value of a row in the tree. Flags without a key in the file keep their dashes, which no key has.
pub(crate) fn key_of(row: &Row) -> String {
    row.path.map_or_else(|| row.label(), |path| path.to_string())
}

/// A layer as a figment provider; its name leads back to the origin of a value.
struct Named<'a> {
    name: &'static str,
    entries: &'a Layer,
    rows: &'a [Row],
}

impl Provider for Named<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut tree = Dict::new();
        for row in self.rows {
            if let Some(entry) = self.entries.get(row.name) {
                insert(&mut tree, &key_of(row), figment_value(&entry.value));
            }
        }
        Ok(Profile::Default.collect(tree))
    }
}

fn insert(tree: &mut Dict, path: &str, value: figment::value::Value) {
    match path.split_once('.') {
        None => drop(tree.insert(path.to_owned(), value)),
        Some((section, rest)) => {
            let inner = tree.entry(section.to_owned()).or_insert_with(|| Dict::new().into());
            if let figment::value::Value::Dict(_, inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

fn figment_value(value: &Value) -> figment::value::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Int32(value) => (*value).into(),
        Value::Float32(value) => (*value).into(),
        Value::Duration(value) => value.to_string().into(),
        Value::String(value) => value.clone().into(),
        Value::Strings(items) => items.clone().into(),
        Value::Int(value) => (*value).into(),
        Value::Float64(value) => (*value).into(),
        Value::Ip(value) => value.to_string().into(),
        Value::Quantity(value) => value.to_string().into(),
        Value::Int32s(items) => items.clone().into(),
        Value::Map(pairs) => dict(pairs),
        Value::Objects(items) => items.iter().map(dict).collect::<Vec<_>>().into(),
        Value::ModuleLevels(items) => items.iter().map(ToString::to_string).collect::<Vec<_>>().into(),
        Value::CertKeys(items) => items.iter().map(cert_key).collect::<Vec<_>>().into(),
    }
}

fn dict(pairs: &BTreeMap<String, String>) -> figment::value::Value {
    let pairs: Dict = pairs.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    pairs.into()
}

fn cert_key(pair: &CertKey) -> figment::value::Value {
    let CertKey { cert, key, names } = pair;
    let fields = [("cert", cert.clone().into()), ("key", key.clone().into()), ("names", names.clone().into())];
    let fields: Dict = fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
    fields.into()
}
