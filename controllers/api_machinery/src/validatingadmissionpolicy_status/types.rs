//! Object types with their fields, as expressions see them.

use std::collections::{BTreeMap, HashMap};

use kcm_cel::{Type, TypeProvider};

/// Words of CEL. A field with such a name is declared as `__name__`, and is found under its own name too.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns the identifier for the name of a field, or `None` if there is none.
///
/// `-`, `.`, `/` and two underscores become words between underscores, and reserved words are put between underscores.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (length, text) = match c {
            '_' if rest.starts_with("__") => (2, "__underscores__"),
            '.' => (1, "__dot__"),
            '-' => (1, "__dash__"),
            '/' => (1, "__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => (1, &rest[..1]),
            _ => return None,
        };
        escaped.push_str(text);
        rest = &rest[length..];
    }
    Some(escaped)
}

/// Object types by name.
#[derive(Clone, Debug, Default)]
pub struct Types {
    objects: HashMap<String, BTreeMap<String, Type>>,
    /// Lists and maps in objects, by their path.
    paths: HashMap<String, Type>,
}

impl Types {
    /// Declares an object type and returns it. Names of fields are escaped.
    pub fn object(&mut self, name: &str, fields: BTreeMap<String, Type>) -> Type {
        self.objects.insert(name.to_owned(), fields);
        Type::object(name)
    }

    /// Gives a list or a map the name of its path.
    pub fn path(&mut self, path: &str, of: Type) {
        self.paths.insert(path.to_owned(), of);
    }

    /// Returns the number of object types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns `true` if there is no object type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl TypeProvider for Types {
    fn find_type(&self, name: &str) -> Option<Type> {
        if self.objects.contains_key(name) {
            return Some(Type::object(name));
        }
        self.paths.get(name).cloned()
    }

    fn find_field(&self, type_name: &str, field: &str) -> Option<Type> {
        let fields = self.objects.get(type_name)?;
        let found = fields.get(field);
        let reserved = || RESERVED.contains(&field).then(|| fields.get(&format!("__{field}__"))).flatten();
        found.or_else(reserved).cloned()
    }
}

/// The object types that all policies see, with the types of their fields. A field is optional in no expression, so
/// only its type is here.
const COMMON: &[(&str, &[(&str, &str)])] = &[
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", "kubernetes.GroupVersionKind"),
            ("resource", "kubernetes.GroupVersionResource"),
            ("subResource", "string"),
            ("requestKind", "kubernetes.GroupVersionKind"),
            ("requestResource", "kubernetes.GroupVersionResource"),
            ("requestSubResource", "string"),
            ("name", "string"),
            ("namespace", "string"),
            ("operation", "string"),
            ("userInfo", "kubernetes.UserInfo"),
            ("dryRun", "bool"),
            ("options", "dyn"),
        ],
    ),
    ("kubernetes.GroupVersionKind", &[("group", "string"), ("version", "string"), ("kind", "string")]),
    ("kubernetes.GroupVersionResource", &[("group", "string"), ("version", "string"), ("resource", "string")]),
    (
        "kubernetes.UserInfo",
        &[
            ("username", "string"),
            ("uid", "string"),
            ("groups", "list(string)"),
            ("extra", "map(string, list(string))"),
        ],
    ),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", "kubernetes.NamespaceMetadata"),
            ("spec", "kubernetes.NamespaceSpec"),
            ("status", "kubernetes.NamespaceStatus"),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", "string"),
            ("generateName", "string"),
            ("namespace", "string"),
            ("labels", "map(string, string)"),
            ("annotations", "map(string, string)"),
            ("UID", "string"),
            ("creationTimestamp", "timestamp"),
            ("deletionGracePeriodSeconds", "int"),
            ("deletionTimestamp", "timestamp"),
            ("generation", "int"),
            ("resourceVersion", "string"),
            ("finalizers", "list(string)"),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", "list(string)")]),
    ("kubernetes.NamespaceStatus", &[("conditions", "list(kubernetes.NamespaceCondition)"), ("phase", "string")]),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", "string"),
            ("type", "string"),
            ("lastTransitionTime", "timestamp"),
            ("message", "string"),
            ("reason", "string"),
        ],
    ),
];

/// Returns the types of `request` and `namespaceObject`. Parts of them that policies cannot see are left out, as
/// upstream does.
#[must_use]
pub fn common() -> Types {
    let mut types = Types::default();
    for (name, fields) in COMMON {
        let fields = fields.iter().map(|(field, of)| {
            let of: Type = of.parse().expect("the types of common fields must be well formed");
            ((*field).to_owned(), of)
        });
        types.object(name, fields.collect());
    }
    types
}
