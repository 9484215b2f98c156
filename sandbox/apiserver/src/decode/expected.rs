//! The type of a body, and whether it may be sent to this path.

use serde_json::Value;

use super::field_path::{FieldPath, note};
use super::protobuf::Envelope;
use super::typed::Typed;
use crate::kinds::Kind;
use crate::schema::{self, Struct};
use crate::status::{FieldError, Status};

/// The type of body that a path accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) is_custom: bool,
}

/// Group, version and kind of a body. A missing part is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Identity {
    group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl Identity {
    fn of(api_version: &str, kind: &str) -> Result<Self, String> {
        let (group, version) = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => {
                return Err(format!("unexpected GroupVersion string: {api_version}"));
            }
            Some((group, version)) => (group, version),
            None => ("", api_version),
        };
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }
}

/// The type that a body is read as.
#[derive(Debug, Clone, Copy)]
pub(super) enum BodyType {
    Known(&'static Struct),
    /// Only the metadata is known.
    Unknown,
}

impl BodyType {
    /// Reads an object of this type; returns it with the messages about unknown fields.
    ///
    /// # Errors
    ///
    /// The first value of a wrong type, with its path.
    pub(super) fn read(self, keep_unknown: bool, value: Value) -> Result<(Value, Vec<String>), String> {
        let typed = Typed::new(schema::types(), keep_unknown);
        match self {
            Self::Known(of) => typed.object(of, value),
            Self::Unknown => typed.untyped(metadata(), value),
        }
    }
}

fn metadata() -> &'static Struct {
    schema::types().named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").expect("the table must describe metadata")
}

impl<'a> Expected<'a> {
    /// Returns the expected body at the path of a kind, or of its subresource.
    pub(crate) fn of(kind: &'a Kind, subresource: Option<&str>) -> Self {
        if let Some(found) = subresource.and_then(|name| kind.subresource(name)) {
            let (group, version, name) = (&*found.group, &*found.version, &*found.kind);
            return Self { group, version, kind: name, is_custom: kind.is_custom() };
        }
        let resource = &kind.resource;
        let (group, version, name) = (&*resource.group, &*resource.version, &*resource.kind);
        Self { group, version, kind: name, is_custom: kind.is_custom() }
    }

    pub(super) fn api_version(&self) -> String {
        api_version(self.group, self.version)
    }

    /// Fills in what a body does not say; custom objects must say all.
    pub(super) fn complete(&self, mut identity: Identity) -> Identity {
        if self.is_custom {
            return identity;
        }
        if identity.kind.is_empty() {
            self.kind.clone_into(&mut identity.kind);
        }
        if identity.version.is_empty() && (identity.group.is_empty() || identity.group == self.group) {
            self.group.clone_into(&mut identity.group);
            self.version.clone_into(&mut identity.version);
        }
        identity
    }

    /// Reads a body whose fields have numbers, not names.
    ///
    /// # Errors
    ///
    /// It is none.
    pub(super) fn read_protobuf(&self, body: &[u8]) -> Result<Value, String> {
        let envelope = Envelope::open(body)?;
        let identity = self.complete(Identity::of(&envelope.api_version, &envelope.kind)?);
        let of = schema::types().of_kind(&identity.group, &identity.version, &identity.kind);
        envelope.read(of)
    }

    pub(super) fn own_type(&self) -> BodyType {
        schema::types().of_kind(self.group, self.version, self.kind).map_or(BodyType::Unknown, BodyType::Known)
    }

    /// The type that a body says it is of.
    ///
    /// # Errors
    ///
    /// The body has no type, or a type that this path does not accept.
    pub(super) fn type_of(&self, identity: &Identity) -> Result<BodyType, String> {
        let Identity { group, version, kind } = identity;
        if self.is_custom || (group, version, kind) == (&self.group.into(), &self.version.into(), &self.kind.into()) {
            return Ok(self.own_type());
        }
        let found = schema::types().of_kind(group, version, kind);
        match found {
            // Another version of the same kind: it is read, and then not accepted.
            Some(found) if kind == self.kind && group == self.group => Ok(BodyType::Known(found)),
            None if !is_list(identity) && !is_of_meta(identity) => {
                let named = api_version(group, version);
                let scheme = "\"pkg/runtime/scheme.go:111\"";
                Err(format!("no kind {kind:?} is registered for version {named:?} in scheme {scheme}"))
            }
            Some(_) | None => {
                // Upstream calls the package of its own types by the first part of the group.
                let package = self.group.split('.').next().filter(|package| !package.is_empty()).unwrap_or("core");
                Err(format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", self.kind))
            }
        }
    }

    /// Refuses an object that was read and is not of this version or kind.
    ///
    /// # Errors
    ///
    /// 400 for another version, 422 for a custom object of another kind.
    pub(super) fn accept(&self, identity: &Identity) -> Result<(), Status> {
        let (given, expected) = (api_version(&identity.group, &identity.version), self.api_version());
        if given != expected {
            return Err(Status::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
        if identity.kind != self.kind {
            let detail = format!("must be {}", self.kind);
            let error = FieldError::invalid("kind", identity.kind.as_str(), detail);
            return Err(Status::invalid(self.group, &identity.kind, "", &[error]));
        }
        Ok(())
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Returns `true` if the identity names a list of known objects.
fn is_list(identity: &Identity) -> bool {
    let item = identity.kind.strip_suffix("List");
    item.is_some_and(|item| schema::types().of_kind(&identity.group, &identity.version, item).is_some())
}

/// Returns `true` if every group of upstream registers the type.
fn is_of_meta(identity: &Identity) -> bool {
    let options = ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"];
    let kind = identity.kind.as_str();
    options.contains(&kind) || kind == "WatchEvent" || (identity.group.is_empty() && kind == "Status")
}

/// Returns group, version and kind of a body. Upper and lower case of field names do not matter, as in upstream.
///
/// # Errors
///
/// It is no object, or says it in a wrong type, or in a version that is none.
pub(super) fn identity(value: &Value) -> Result<Identity, String> {
    let entries = value.as_object().ok_or("couldn't get version/kind; expected an object")?;
    let text = |name: &str| {
        let mut given = entries.iter().filter(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null());
        given.next_back().map_or(Ok(""), |(_, value)| {
            value.as_str().ok_or_else(|| format!("couldn't get version/kind; {name}: expected a string"))
        })
    };
    Identity::of(text("apiVersion")?, text("kind")?)
}

/// Reads the options of a deletion; every group calls them its own.
///
/// # Errors
///
/// They are none.
pub(super) fn read_delete_options(body: &[u8]) -> Result<Value, String> {
    Envelope::open(body)?.read(schema::types().named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"))
}

/// The messages about unknown fields of the operations of a JSON patch.
///
/// # Errors
///
/// It is no list of operations.
pub(super) fn operations(value: &Value) -> Result<Vec<String>, String> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let items = value.as_array().ok_or("expected a list of operations")?;
    let mut unknown = Vec::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_null()) {
        let entries = item.as_object().ok_or_else(|| format!("[{index}]: expected an operation"))?;
        for (key, value) in entries {
            match key.as_str() {
                "op" | "path" | "from" if !value.is_string() && !value.is_null() => {
                    return Err(format!("[{index}].{key}: expected a string"));
                }
                "op" | "path" | "from" | "value" => {}
                _ => {
                    let mut path = FieldPath::default();
                    path.enter_item(index);
                    path.enter(key);
                    note("unknown", &path, &mut unknown);
                }
            }
        }
    }
    Ok(unknown)
}
