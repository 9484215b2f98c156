//! The schema of the API: types, list keys, merge keys. Pure.
//!
//! The types are in `data/schema.txt`, which `cargo xtask sandbox-tables` writes from upstream's OpenAPI
//! documents; its first lines explain the notation. Patches, server-side apply, validation of field names, defaults
//! and our own OpenAPI documents all use these types.

mod parse;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

/// The table, whose types are [`types`].
pub(crate) const TABLE: &str = include_str!("../../data/schema.txt");

static TYPES: LazyLock<Types> = LazyLock::new(|| parse::types(TABLE));

/// All types of the built-in API.
pub(crate) fn types() -> &'static Types {
    &TYPES
}

/// Types that refer to each other by number.
#[derive(Debug, Default)]
pub(crate) struct Types {
    structs: Vec<Struct>,
    by_name: BTreeMap<&'static str, usize>,
    by_kind: BTreeMap<(&'static str, &'static str, &'static str), usize>,
}

/// An object with known fields.
#[derive(Debug)]
pub(crate) struct Struct {
    /// As OpenAPI names it, for example `io.k8s.api.apps.v1.Deployment`.
    pub(crate) name: &'static str,
    /// Group, version and kind, if objects of this type have a path of their own.
    pub(crate) kind: Option<(&'static str, &'static str, &'static str)>,
    /// Is owned and replaced as a whole by server-side apply.
    pub(crate) atomic: bool,
    /// Fields in the order of their names.
    pub(crate) fields: Vec<Field>,
}

/// A field of an object.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    pub(crate) required: bool,
    /// The default in OpenAPI. `{}` means that the API server always writes the field; for
    /// list keys, the value of an absent key.
    pub(crate) default: Option<Value>,
    pub(crate) list: ListKind,
    /// A map, or a struct in this place, that is owned and replaced as a whole.
    pub(crate) atomic: bool,
    pub(crate) patch: Patch,
    pub(crate) empty: Empty,
    /// Name of the Go type, if it differs from the type.
    pub(crate) go: Option<&'static str>,
    /// The number in protobuf: `2.5` is field 5 of the embedded message in field 2.
    pub(crate) number: Option<&'static str>,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Type {
    String,
    Int32,
    Int64,
    Number,
    Bool,
    /// A base64 string in JSON.
    Bytes,
    /// An RFC 3339 string in JSON.
    Time,
    Quantity,
    IntOrString,
    Any,
    List(Box<Type>),
    Map(Box<Type>),
    Struct(StructId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StructId(usize);

/// The list type of server-side apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ListKind {
    /// Owned and replaced as a whole; also every type that is no list.
    #[default]
    Atomic,
    /// Scalars, each owned by itself.
    Set,
    /// Objects, keyed by these fields.
    Map(Vec<&'static str>),
}

/// The form in which the API server writes an empty or absent field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Empty {
    /// As its default; omitted if it has none.
    #[default]
    Default,
    Omitted,
    Null,
    /// As the number, or the quantity, 0.
    Zero,
    /// Unchanged; omitted if it is absent.
    Kept,
}

/// The patch strategy of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Patch {
    /// Lists are merged, not replaced; by `key` if their items are objects.
    pub(crate) merge: bool,
    pub(crate) key: Option<&'static str>,
    pub(crate) retain_keys: bool,
}

impl Types {
    pub(crate) fn get(&self, id: StructId) -> &Struct {
        self.structs.get(id.0).expect("a type's number must be that of a struct")
    }

    /// The struct that is called so in OpenAPI.
    pub(crate) fn named(&self, name: &str) -> Option<&Struct> {
        self.by_name.get(name).and_then(|at| self.structs.get(*at))
    }

    /// The struct of a kind.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Struct> {
        self.by_kind.get(&(group, version, kind)).and_then(|at| self.structs.get(*at))
    }
}

impl Struct {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.name.cmp(name)).ok().and_then(|at| self.fields.get(at))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(kind: &str, name: &str) -> &'static Field {
        types().named(kind).and_then(|found| found.field(name)).expect("the field must be in the table")
    }

    #[test]
    fn every_served_kind_has_a_type() {
        for kind in crate::kinds::Kinds::built_in(true).iter() {
            let resource = &kind.resource;
            let found = types().of_kind(&resource.group, &resource.version, &resource.kind);
            assert!(found.is_some(), "{resource} must have a type");
        }
    }

    #[test]
    fn lists_by_key_know_their_keys_and_the_default_of_one() {
        let ports = field("io.k8s.api.core.v1.Container", "ports");
        assert_eq!(ports.list, ListKind::Map(vec!["containerPort", "protocol"]));
        assert_eq!(ports.patch, Patch { merge: true, key: Some("containerPort"), retain_keys: false });
        assert_eq!(field("io.k8s.api.core.v1.ContainerPort", "protocol").default, Some(json!("TCP")));
    }

    #[test]
    fn volumes_are_merged_and_know_retain_keys() {
        let volumes = field("io.k8s.api.core.v1.PodSpec", "volumes");
        assert_eq!(volumes.patch, Patch { merge: true, key: Some("name"), retain_keys: true });
    }

    #[test]
    fn a_struct_refers_to_others() {
        let template = field("io.k8s.api.apps.v1.DeploymentSpec", "template");
        let Type::Struct(id) = template.of else { panic!("a template must be a struct") };
        assert_eq!(types().get(id).name, "io.k8s.api.core.v1.PodTemplateSpec");
        assert!(template.required && template.default == Some(json!({})));
    }

    #[test]
    fn selectors_are_atomic() {
        let selector = types().named("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector");
        assert!(selector.is_some_and(|selector| selector.atomic));
        assert!(field("io.k8s.api.core.v1.PodSpec", "nodeSelector").atomic);
    }
}
