//! The types that a document refers to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::descriptions;
use crate::kinds::Kind;
use crate::schema::{self, Field, ListKind, Struct, Type};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Collects the types that were referred to, and those that they refer to.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    components: BTreeMap<String, Value>,
    wanted: BTreeSet<&'static str>,
}

impl Schemas {
    /// Refers to a type of the table, or to a scalar with a name.
    pub(super) fn refer(&mut self, name: &'static str) -> Value {
        if !self.components.contains_key(name) {
            self.wanted.insert(name);
        }
        reference(name)
    }

    /// Refers to a type of the meta group.
    pub(super) fn refer_to_meta(&mut self, name: &str) -> Value {
        if name == "Patch" {
            self.components.insert(format!("{META}Patch"), json!({ "type": "object" }));
            return reference(&format!("{META}Patch"));
        }
        let found = schema::types().named(&format!("{META}{name}")).expect("the table must describe the meta group");
        self.refer(found.name)
    }

    /// Refers to the type of the objects of a kind.
    pub(super) fn refer_to_kind(&mut self, kind: &Kind) -> Value {
        let resource = &kind.resource;
        let reference = self.refer_to(&resource.group, &resource.version, &resource.kind);
        let defined = kind.definition.as_ref().and_then(|version| version.pointer("/schema/openAPIV3Schema"));
        if let Some(Value::Object(defined)) = defined {
            let name = custom_name(&resource.group, &resource.version, &resource.kind);
            let component = self.components.entry(name).or_default();
            for (field, value) in defined.iter().filter(|(field, _)| *field != "properties") {
                component[field] = value.clone();
            }
            for (field, value) in defined.get("properties").and_then(Value::as_object).into_iter().flatten() {
                // What all objects have is not what the definition says of it.
                if !["apiVersion", "kind", "metadata"].contains(&field.as_str()) {
                    component["properties"][field] = value.clone();
                }
            }
        }
        reference
    }

    /// Refers to the type of a kind by its names; a kind that the table does not know may hold any field.
    pub(super) fn refer_to(&mut self, group: &str, version: &str, kind: &str) -> Value {
        if let Some(found) = schema::types().of_kind(group, version, kind) {
            return self.refer(found.name);
        }
        let name = custom_name(group, version, kind);
        let metadata = self.refer_to_meta("ObjectMeta");
        let component = json!({
            "type": "object",
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": { "allOf": [metadata] },
            },
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [{ "group": group, "version": version, "kind": kind }],
        });
        // What its definition says may be there already.
        self.components.entry(name.clone()).or_insert(component);
        reference(&name)
    }

    /// Refers to the type of lists of a kind.
    pub(super) fn refer_to_list(&mut self, kind: &Kind) -> Value {
        let resource = &kind.resource;
        let (group, version, list) = (&resource.group, &resource.version, format!("{}List", resource.kind));
        let name = match schema::types().of_kind(group, version, &resource.kind) {
            Some(found) => format!("{}List", found.name),
            None => custom_name(group, version, &list),
        };
        let item = self.refer_to_kind(kind);
        let metadata = self.refer_to_meta("ListMeta");
        let component = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": { "type": "string" },
                "items": { "type": "array", "items": { "default": {}, "allOf": [item] } },
                "kind": { "type": "string" },
                "metadata": { "default": {}, "allOf": [metadata] },
            },
            "x-kubernetes-group-version-kind": [{ "group": group, "version": version, "kind": list }],
        });
        self.components.insert(name.clone(), component);
        reference(&name)
    }

    /// All types that were referred to, and the types to which they refer.
    pub(super) fn into_components(mut self) -> BTreeMap<String, Value> {
        while let Some(name) = self.wanted.pop_first() {
            let component = match schema::types().named(name) {
                Some(found) => self.component(found),
                None => scalar(name),
            };
            self.components.insert(name.to_owned(), component);
        }
        self.components
    }

    fn component(&mut self, of: &'static Struct) -> Value {
        let mut properties = Map::new();
        for field in &of.fields {
            let mut property = self.property(field);
            if let Some(text) = descriptions::of_field(of.name, field.name) {
                property["description"] = json!(text);
            }
            properties.insert(field.name.to_owned(), property);
        }
        let mut component = json!({ "type": "object" });
        if let Some(text) = descriptions::of_type(of.name) {
            component["description"] = json!(text);
        }
        let required: Vec<&str> = of.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        if !required.is_empty() {
            component["required"] = json!(required);
        }
        if !properties.is_empty() {
            component["properties"] = properties.into();
        }
        if of.atomic {
            component["x-kubernetes-map-type"] = json!("atomic");
        }
        if let Some((group, version, kind)) = of.kind {
            component["x-kubernetes-group-version-kind"] =
                json!([{ "group": group, "version": version, "kind": kind }]);
        }
        component
    }

    fn property(&mut self, field: &'static Field) -> Value {
        let mut property = self.value(&field.of, field.go);
        // An extension or a default cannot stand beside a reference.
        if property.get("$ref").is_some() {
            property = json!({ "allOf": [property] });
        }
        if let Some(default) = &field.default {
            property["default"] = default.clone();
        }
        let is_list = matches!(field.of, Type::List(_));
        match &field.list {
            ListKind::Set => property["x-kubernetes-list-type"] = json!("set"),
            ListKind::Map(keys) => {
                property["x-kubernetes-list-type"] = json!("map");
                property["x-kubernetes-list-map-keys"] = json!(keys);
            }
            ListKind::Atomic if field.atomic && is_list => property["x-kubernetes-list-type"] = json!("atomic"),
            ListKind::Atomic if field.atomic => property["x-kubernetes-map-type"] = json!("atomic"),
            ListKind::Atomic => {}
        }
        let patch = &field.patch;
        let strategies: Vec<&str> = [(patch.merge, "merge"), (patch.retain_keys, "retainKeys")]
            .iter()
            .filter(|it| it.0)
            .map(|it| it.1)
            .collect();
        if !strategies.is_empty() {
            property["x-kubernetes-patch-strategy"] = json!(strategies.join(","));
        }
        if let Some(key) = patch.key {
            property["x-kubernetes-patch-merge-key"] = json!(key);
        }
        property
    }

    fn value(&mut self, of: &'static Type, go: Option<&str>) -> Value {
        match of {
            Type::String => json!({ "type": "string" }),
            Type::Int32 => json!({ "type": "integer", "format": "int32" }),
            Type::Int64 => json!({ "type": "integer", "format": "int64" }),
            Type::Number => json!({ "type": "number", "format": "double" }),
            Type::Bool => json!({ "type": "boolean" }),
            Type::Bytes => json!({ "type": "string", "format": "byte" }),
            Type::Any => json!({ "type": "object" }),
            Type::Time if go == Some("v1.MicroTime") => self.refer("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"),
            Type::Time => self.refer("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
            Type::Quantity => self.refer("io.k8s.apimachinery.pkg.api.resource.Quantity"),
            Type::IntOrString => self.refer("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
            Type::Struct(id) => self.refer(schema::types().get(*id).name),
            Type::List(item) => json!({ "type": "array", "items": self.item(item) }),
            Type::Map(value) => json!({ "type": "object", "additionalProperties": self.item(value) }),
        }
    }

    /// An item of a list or a value of a map, which is never null.
    fn item(&mut self, of: &'static Type) -> Value {
        let mut item = self.value(of, None);
        match of {
            Type::String => item["default"] = json!(""),
            Type::Int32 | Type::Int64 | Type::Number => item["default"] = json!(0),
            Type::Struct(_) => item = json!({ "default": {}, "allOf": [item] }),
            Type::Bool
            | Type::Bytes
            | Type::Time
            | Type::Quantity
            | Type::IntOrString
            | Type::Any
            | Type::List(_)
            | Type::Map(_) => {}
        }
        item
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// `com.example.v1.Widget`: the group turned round.
fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let turned: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", turned.join("."))
}

fn scalar(name: &str) -> Value {
    match name.rsplit('.').next() {
        Some("Time" | "MicroTime") => json!({ "type": "string", "format": "date-time" }),
        Some("Quantity") => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        Some("IntOrString") => {
            json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
        }
        _ => json!({ "type": "object" }),
    }
}
