//! `DeleteOptions`: parsing and validation.
//!
//! # Upstream
//! `DeleteOptions` of `apimachinery/pkg/apis/meta/v1`, its validation, and `apiserver/pkg/endpoints/handlers/delete.go`

use serde_json::{Value, json};

use crate::decode;
use crate::json::{self, at};
use crate::kinds::{Behaviour, Kind};
use crate::patch;
use crate::request::Query;
use crate::status::{FieldError, Status};

/// Options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds` of the options.
    pub grace: Option<i64>,
    /// `preconditions.uid` of the options.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion` of the options.
    pub version: Option<String>,
    /// `propagationPolicy` of the options.
    pub propagation: Option<Propagation>,
    /// `orphanDependents: false`, the deprecated form: the response for an object that remains is 202.
    pub cascades: bool,
    /// Whether `dryRun` is set.
    pub dry_run: bool,
}

/// The propagation policy for dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They lose the owner reference.
    Orphan,
    /// They are deleted after the owner.
    Background,
    /// They are deleted before the owner.
    Foreground,
}

impl DeleteOptions {
    /// Reads the options from the body, or from the query if there is none.
    pub(crate) fn parse(query: &Query, content_type: &str, body: &[u8]) -> Result<Self, Status> {
        if !body.is_empty() {
            return Self::of(&read(content_type, body)?);
        }
        let mut given = json!({ "dryRun": query.all("dryRun") });
        json::set(&mut given, &["gracePeriodSeconds"], query.number::<i64>("gracePeriodSeconds")?.map(Value::from));
        json::set(&mut given, &["orphanDependents"], query.flag("orphanDependents").map(Value::from));
        json::set(&mut given, &["propagationPolicy"], query.get("propagationPolicy").map(Value::from));
        Self::of(&given)
    }

    /// Parses the options from JSON.
    pub(crate) fn of(given: &Value) -> Result<Self, Status> {
        let grace = typed(given, "gracePeriodSeconds", "int64", Value::as_i64)?;
        let orphans = typed(given, "orphanDependents", "bool", Value::as_bool)?;
        let policy = typed(given, "propagationPolicy", "v1.DeletionPropagation", |it| it.as_str().map(str::to_owned))?;
        let dry_run = json::list(given, &["dryRun"]);
        let mut errors = Vec::new();
        let mut propagation =
            orphans.map(|orphans| if orphans { Propagation::Orphan } else { Propagation::Background });
        if let Some(policy) = policy {
            if orphans.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", policy.as_str(), detail));
            }
            propagation = match policy.as_str() {
                "Foreground" => Some(Propagation::Foreground),
                "Background" => Some(Propagation::Background),
                "Orphan" => Some(Propagation::Orphan),
                _ => {
                    let known = &["Foreground", "Background", "Orphan", "nil"];
                    errors.push(FieldError::not_supported("propagationPolicy", policy, known));
                    None
                }
            };
        }
        if dry_run.iter().any(|stage| stage != "All") {
            errors.push(FieldError::not_supported("dryRun", dry_run.to_vec(), &["All"]));
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        let precondition = |field: &str| json::text(given, &["preconditions", field]).map(str::to_owned);
        Ok(Self {
            grace,
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            propagation,
            cascades: orphans == Some(false),
            dry_run: !dry_run.is_empty(),
        })
    }

    pub(crate) fn check(&self, kind: &Kind, old: &Value) -> Result<(), Status> {
        // Upstream names the kind here, not the resource.
        let mut named = kind.resource.clone();
        named.plural = named.kind.clone();
        let name = json::name(old);
        for (what, given, stored, happened) in [
            ("UID", &self.uid, json::uid(old), "deleted and then recreated"),
            ("ResourceVersion", &self.version, json::version(old), "modified"),
        ] {
            let Some(given) = given.as_deref().filter(|given| *given != stored) else { continue };
            if kind.behaviour == Behaviour::Namespace {
                let why =
                    format!("Precondition failed: {what} in precondition: {given}, {what} in object meta: {stored}");
                return Err(Status::conflict(&kind.resource, name, &why));
            }
            let why = format!(
                "the {what} in the precondition ({given}) does not match the {what} in record ({stored}). The object might have been {happened}"
            );
            return Err(Status::conflict(&named, name, &why));
        }
        Ok(())
    }
}

fn read(content_type: &str, body: &[u8]) -> Result<Value, Status> {
    let refused = |why: String| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"));
    let Some(read) = decode::delete_options(content_type, body) else {
        let accepted = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
        return Err(Status::unsupported_media_type(&accepted));
    };
    let given = read.map_err(refused)?;
    if !given.is_object() && !given.is_null() {
        return Err(refused("json: cannot unmarshal into a struct with an apiVersion and a kind".to_owned()));
    }
    let text = |field: &str| json::text(&given, &[field]).unwrap_or_default();
    if !matches!(text("kind"), "" | "DeleteOptions") {
        let (kind, version) = (text("kind"), text("apiVersion"));
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(given)
}

fn typed<T>(given: &Value, field: &str, of: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Option<T>, Status> {
    let Some(value) = at(given, &[field]) else { return Ok(None) };
    let kind = patch::kind_of(value);
    read(value).map(Some).ok_or_else(|| {
        Status::bad_request(format!(
            "json: cannot unmarshal {kind} into Go struct field DeleteOptions.{field} of type {of}"
        ))
    })
}
