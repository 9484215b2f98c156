//! `OpenAPI` documents, and the types for their schemas.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use kcm_cel::Type;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::kinds::Kind;
use super::types::{Types, escape};

/// Number of schemas that the types of a kind may come from, a schema counted each time it is referred to.
const MAX_SCHEMAS: usize = 200_000;
/// Depth of the types of a kind.
const MAX_DEPTH: usize = 200;
/// Length of the name of a type.
const MAX_PATH: usize = 16 * 1024;
/// Length of the names of all types of a kind, in bytes.
const MAX_NAMES: usize = 32 * 1024 * 1024;
const REFERENCE: &str = "#/components/schemas/";

/// A document that gives no types for a kind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The document is not one of `OpenAPI`, version 3.
    #[error("cannot read the OpenAPI document")]
    Document(#[source] serde_json::Error),
    /// A schema in the document cannot be read.
    #[error("cannot read the schema {name:?} of the OpenAPI document")]
    Schema {
        /// Name of the schema.
        name: String,
        /// Reason of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// The document has no schema of the kind, or refers to a schema that is missing. The kind is not checked, silently.
    #[error("the OpenAPI document has no schema {0:?}")]
    NotFound(String),
    /// The schema of the kind is too large or too deep.
    #[error("the schema of {0} has too many parts")]
    TooLarge(String),
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    components: Components<'a>,
}

#[derive(Default, Deserialize)]
struct Components<'a> {
    #[serde(borrow, default)]
    schemas: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Kinds {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Vec<Kind>,
}

/// The parts of a schema that decide its type.
#[derive(Clone, Debug, Default, Deserialize)]
struct Schema {
    #[serde(rename = "$ref", default)]
    reference: Option<String>,
    #[serde(rename = "allOf", default)]
    all_of: Vec<Schema>,
    #[serde(rename = "type", default)]
    of: Option<OneOrMany>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    items: Option<Box<Schema>>,
    #[serde(default)]
    properties: Option<BTreeMap<String, Schema>>,
    #[serde(rename = "additionalProperties", default)]
    additional: Option<BoolOrSchema>,
    #[serde(rename = "x-kubernetes-int-or-string", default)]
    int_or_string: Option<serde_json::Value>,
    #[serde(rename = "x-kubernetes-embedded-resource", default)]
    embedded: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum BoolOrSchema {
    Bool(#[expect(dead_code, reason = "either value allows fields without a type")] bool),
    Schema(Box<Schema>),
}

impl Schema {
    fn types(&self) -> &[String] {
        match &self.of {
            Some(OneOrMany::One(one)) => std::slice::from_ref(one),
            Some(OneOrMany::Many(many)) => many,
            None => &[],
        }
    }

    fn is(&self, of: &str) -> bool {
        self.types().iter().any(|each| each == of)
    }

    fn of_type(of: &str) -> Self {
        Self { of: Some(OneOrMany::One(of.to_owned())), ..Self::default() }
    }

    /// Returns the name of the schema that stands for this one. `allOf` around a reference keeps its description only.
    fn reference(&self) -> Option<&str> {
        let reference = self.reference.as_deref();
        reference.or_else(|| self.all_of.iter().find_map(Self::reference))
    }

    fn is_int_or_string(&self) -> bool {
        self.format.as_deref() == Some("int-or-string") || is_true(self.int_or_string.as_ref())
    }

    fn is_embedded(&self) -> bool {
        is_true(self.embedded.as_ref())
    }
}

fn is_true(extension: Option<&serde_json::Value>) -> bool {
    extension.and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// An `OpenAPI` document of a group and version. It is read as far as a kind needs it.
pub struct Document<'a> {
    schemas: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Document<'a> {
    /// Reads the names of the schemas.
    ///
    /// # Errors
    ///
    /// Returns [`SchemaError::Document`] if the text is not an `OpenAPI` document.
    pub fn parse(json: &'a str) -> Result<Self, SchemaError> {
        let whole: Whole<'a> = serde_json::from_str(json).map_err(SchemaError::Document)?;
        Ok(Self { schemas: whole.components.schemas })
    }

    /// Returns the type of a kind and all types in it, or `None` if expressions cannot see the kind. `root` is the name
    /// of the type.
    ///
    /// # Errors
    ///
    /// Returns [`SchemaError::NotFound`] if the document does not describe the kind, and other variants if the
    /// description cannot be used.
    pub fn types_of(&self, kind: &Kind, root: &str) -> Result<Option<(Type, Types)>, SchemaError> {
        let name = self.schemas.iter().find_map(|(name, raw)| {
            // A schema without readable kinds describes another kind.
            let kinds: Kinds = serde_json::from_str(raw.get()).unwrap_or_default();
            kinds.kinds.contains(kind).then_some(name)
        });
        let Some(name) = name else { return Err(SchemaError::NotFound(kind.to_string())) };
        let mut converter = Converter {
            document: self,
            kind,
            schemas: HashMap::new(),
            visited: vec![name.to_string()],
            count: 0,
            length: 0,
            types: Types::default(),
        };
        let schema = converter.schema(name)?;
        let of = converter.resolve(&schema, root, true, 0)?;
        Ok(of.map(|of| (of, converter.types)))
    }
}

struct Converter<'d, 'a> {
    document: &'d Document<'a>,
    kind: &'d Kind,
    /// Schemas that were referred to.
    schemas: HashMap<String, Rc<Schema>>,
    /// Names of the schemas that contain the current schema.
    visited: Vec<String>,
    count: usize,
    /// Length of the paths of all schemas.
    length: usize,
    types: Types,
}

impl Converter<'_, '_> {
    fn schema(&mut self, name: &str) -> Result<Rc<Schema>, SchemaError> {
        if let Some(known) = self.schemas.get(name) {
            return Ok(Rc::clone(known));
        }
        let raw = self.document.schemas.get(name).ok_or_else(|| SchemaError::NotFound(name.to_owned()))?;
        let schema: Schema =
            serde_json::from_str(raw.get()).map_err(|source| SchemaError::Schema { name: name.to_owned(), source })?;
        let schema = Rc::new(schema);
        self.schemas.insert(name.to_owned(), Rc::clone(&schema));
        Ok(schema)
    }

    /// Follows a reference and converts the schema to which it leads.
    fn resolve(&mut self, schema: &Schema, path: &str, root: bool, depth: usize) -> Result<Option<Type>, SchemaError> {
        let Some(reference) = schema.reference() else {
            return self.convert(schema, path, root || schema.is_embedded(), depth);
        };
        let name = reference.strip_prefix(REFERENCE).unwrap_or(reference);
        if self.visited.iter().any(|each| each == name) {
            return self.convert(&Schema::of_type("object"), path, false, depth);
        }
        let resolved = self.schema(name)?;
        self.visited.push(name.to_owned());
        let of = self.convert(&resolved, path, root || resolved.is_embedded(), depth);
        self.visited.pop();
        of
    }

    /// Converts a schema that is no reference. `None` if expressions cannot see it.
    fn convert(&mut self, schema: &Schema, path: &str, root: bool, depth: usize) -> Result<Option<Type>, SchemaError> {
        self.count += 1;
        self.length += path.len();
        let is_too_long = path.len() > MAX_PATH || self.length > MAX_NAMES;
        if depth > MAX_DEPTH || self.count > MAX_SCHEMAS || is_too_long {
            return Err(SchemaError::TooLarge(self.kind.to_string()));
        }
        if schema.is_int_or_string() {
            return Ok(Some(Type::Dyn));
        }
        let format = schema.format.as_deref().unwrap_or_default();
        Ok(Some(match (schema.types().first().map(String::as_str), format) {
            (Some("array"), _) => {
                let Some(items) = &schema.items else { return Ok(None) };
                let Some(of) = self.resolve(items, &format!("{path}.@idx"), false, depth + 1)? else { return Ok(None) };
                self.named(path, Type::list(of))
            }
            (Some("object"), _) => {
                if let Some(BoolOrSchema::Schema(values)) = &schema.additional {
                    let Some(of) = self.resolve(values, &format!("{path}.@elem"), false, depth + 1)? else {
                        return Ok(None);
                    };
                    return Ok(Some(self.named(path, Type::map(Type::String, of))));
                }
                self.object(schema, path, root, depth)?
            }
            (Some("string"), "byte") => Type::Bytes,
            (Some("string"), "duration") => Type::Duration,
            (Some("string"), "date" | "date-time") => Type::Timestamp,
            (Some("string"), _) => Type::String,
            (Some("boolean"), _) => Type::Bool,
            (Some("number"), _) => Type::Double,
            (Some("integer"), _) => Type::Int,
            _ => return Ok(None),
        }))
    }

    fn named(&mut self, path: &str, of: Type) -> Type {
        self.types.path(path, of.clone());
        of
    }

    fn object(&mut self, schema: &Schema, path: &str, root: bool, depth: usize) -> Result<Type, SchemaError> {
        let added = if root && !self.has_object_meta(schema)? { object_meta() } else { BTreeMap::new() };
        let mut fields = BTreeMap::new();
        let own = schema.properties.iter().flatten().filter(|(name, _)| !added.contains_key(*name));
        for (name, property) in own.chain(&added) {
            // The path has the escaped name. Fields without one are converted all the same, for their errors.
            let escaped = escape(name);
            let below = format!("{path}.{}", escaped.as_ref().unwrap_or(name));
            let of = self.resolve(property, &below, false, depth + 1)?;
            if let (Some(of), Some(escaped)) = (of, escaped) {
                fields.insert(escaped, of);
            }
        }
        Ok(self.types.object(path, fields))
    }

    /// Returns `true` if a schema has the fields that every resource has.
    fn has_object_meta(&mut self, schema: &Schema) -> Result<bool, SchemaError> {
        if !self.is(schema, "kind", "string")? || !self.is(schema, "apiVersion", "string")? {
            return Ok(false);
        }
        let Some(metadata) = self.property(schema, "metadata")? else { return Ok(false) };
        Ok(metadata.is("object")
            && self.is(&metadata, "name", "string")?
            && self.is(&metadata, "generateName", "string")?)
    }

    fn is(&mut self, schema: &Schema, property: &str, of: &str) -> Result<bool, SchemaError> {
        Ok(self.property(schema, property)?.is_some_and(|property| property.is(of)))
    }

    /// Returns the schema of a property, or the one to which it refers.
    fn property(&mut self, schema: &Schema, name: &str) -> Result<Option<Rc<Schema>>, SchemaError> {
        let Some(property) = schema.properties.as_ref().and_then(|properties| properties.get(name)) else {
            return Ok(None);
        };
        let Some(reference) = property.reference() else { return Ok(Some(Rc::new(property.clone()))) };
        let name = reference.strip_prefix(REFERENCE).unwrap_or(reference);
        if self.visited.iter().any(|each| each == name) {
            return Ok(Some(Rc::new(Schema::of_type("object"))));
        }
        self.schema(name).map(Some)
    }
}

/// The fields that every resource has, for schemas without them.
fn object_meta() -> BTreeMap<String, Schema> {
    let string = || Schema::of_type("string");
    let names = BTreeMap::from([("name".to_owned(), string()), ("generateName".to_owned(), string())]);
    let metadata = Schema { properties: Some(names), ..Schema::of_type("object") };
    BTreeMap::from([
        ("kind".to_owned(), string()),
        ("apiVersion".to_owned(), string()),
        ("metadata".to_owned(), metadata),
    ])
}
