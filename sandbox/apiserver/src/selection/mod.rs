//! The selection of a list or watch: namespace, label selector and field selector.

mod selector_error;

use std::borrow::Cow;

use kcm_api::{InvalidSelector, ObjectKey, Resource, Selector};
use serde_json::Value;

use crate::event_view;
use crate::json::{self, read_labels};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::stored::Stored;

/// So many fields are looked for in the text of an object.
const FEW: usize = 3;

/// The requirements for an object to be listed or watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    labels: Option<Selector>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl Selection {
    /// Parses the selectors of a request.
    pub(crate) fn parse(
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Status> {
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: labels.map(parse_labels).transpose()?,
            fields: fields.map_or(Ok(Vec::new()), |text| parse_fields(kind, text))?,
        })
    }

    /// Reports whether only the namespace is selected by.
    pub(crate) fn has_selectors(&self) -> bool {
        self.labels.is_some() || !self.fields.is_empty()
    }

    /// Narrows the selection to one name.
    pub(crate) fn require_name(&mut self, name: &str) {
        let path = vec!["metadata".to_owned(), "name".to_owned()];
        self.fields.push(FieldRequirement { path, value: name.to_owned(), equal: true });
    }

    pub(crate) fn matches(&self, key: &ObjectKey, object: &Stored) -> bool {
        // One field is found in the text; for many the values are made, once.
        let _held = (self.fields.len() > FEW).then(|| object.value());
        let labels = || object.at(&["metadata", "labels"]).map(|labels| read_labels(&labels)).unwrap_or_default();
        (self.namespace.is_none() || key.namespace() == self.namespace.as_deref())
            && self.labels.as_ref().is_none_or(|selector| selector.matches(&labels()))
            && self.fields.chunk_by(|one, other| one.path == other.path).all(|alike| all_match(alike, key, object))
    }
}

/// Returns `true` if all requirements of one field, which is looked up once, are met.
fn all_match(requirements: &[FieldRequirement], key: &ObjectKey, object: &Stored) -> bool {
    let Some(first) = requirements.first() else { return true };
    let path: Vec<&str> = first.path.iter().map(String::as_str).collect();
    let found: Cow<'_, str> = match path.as_slice() {
        // The key says it without a look at the object.
        ["metadata", "name"] => key.name().into(),
        path => field_text(object, path).into(),
    };
    requirements.iter().all(|requirement| (found == requirement.value) == requirement.equal)
}

/// Returns the string form of a field for field selectors; absent fields have their zero value.
fn field_text(object: &Stored, path: &[&str]) -> String {
    match path {
        ["source"] => {
            let component = object.text_at(&["source", "component"]);
            if component.is_empty() { object.text_at(&["reportingComponent"]) } else { component }
        }
        ["status", "successful"] => field_text(object, &["status", "succeeded"]),
        ["status", "podIPs"] => {
            let ips = object.at(path).unwrap_or_default();
            let ips = ips.as_array().into_iter().flatten();
            ips.filter_map(|ip| json::text(ip, &["ip"])).collect::<Vec<_>>().join(",")
        }
        _ => match object.at(path) {
            None | Some(Value::Null) => match path {
                ["spec", "unschedulable" | "hostNetwork"] => "false".to_owned(),
                ["status", "replicas" | "succeeded"] => "0".to_owned(),
                _ => String::new(),
            },
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        },
    }
}

fn parse_labels(text: &str) -> Result<Selector, Status> {
    text.parse().map_err(|error: InvalidSelector| {
        let why = selector_error::why(text).unwrap_or_else(|| format!("unable to parse requirement: {error}"));
        Status::bad_request(why)
    })
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldRequirement>, Status> {
    let mut requirements = Vec::new();
    for term in split_terms(text).into_iter().filter(|term| !term.is_empty()) {
        let (path, value, equal) = split_term(term)
            .ok_or_else(|| Status::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'")))?;
        let path = check_field(kind, path)?;
        requirements.push(FieldRequirement {
            path: path.split('.').map(str::to_owned).collect(),
            value: unescape(value).map_err(|why| Status::bad_request(format!("invalid field selector: {why}")))?,
            equal,
        });
    }
    // Those of one field are looked at together.
    requirements.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(requirements)
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut from, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == ',' && !escaped {
            terms.push(&text[from..at]);
            from = at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    terms.push(&text[from..]);
    terms
}

/// Path, value, and whether they are to be equal.
fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    let at = term.find('=')?;
    if let Some(path) = term[..at].strip_suffix('!') {
        return Some((path, &term[at + 1..], false));
    }
    let value = &term[at + 1..];
    Some((&term[..at], value.strip_prefix('=').unwrap_or(value), true))
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => return Err(format!("invalid escape sequence: \\{other}")),
                None => return Err("invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("unescaped character in value: {}", u32::from(c))),
            plain_char => plain.push(plain_char),
        }
    }
    Ok(plain)
}

const ANYWHERE: [&str; 2] = ["metadata.name", "metadata.namespace"];
const IN_CLUSTER: [&str; 1] = ["metadata.name"];

/// Returns the fields of metadata and the other fields by which a kind is selected, if it has any.
///
/// # Upstream
/// `AddFieldLabelConversionFunc` in `pkg/apis`
fn selectable(resource: &Resource) -> Option<(&'static [&'static str], &'static [&'static str])> {
    let fields: (&[&str], &[&str]) = match (&*resource.group, &*resource.plural) {
        ("", "events") => (
            &ANYWHERE,
            &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
        ),
        ("", "namespaces") => (&IN_CLUSTER, &["status.phase"]),
        ("", "nodes") => (&IN_CLUSTER, &["spec.unschedulable"]),
        ("", "pods") => (
            &ANYWHERE,
            &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.podIPs",
                "status.nominatedNodeName",
            ],
        ),
        ("", "replicationcontrollers") => (&ANYWHERE, &["status.replicas"]),
        ("", "secrets") => (&ANYWHERE, &["type"]),
        ("", "services") => (&ANYWHERE, &["spec.clusterIP", "spec.type"]),
        ("batch", "jobs") => (&ANYWHERE, &["status.successful"]),
        ("certificates.k8s.io", "podcertificaterequests") => {
            (&IN_CLUSTER, &["spec.signerName", "spec.podName", "spec.nodeName"])
        }
        ("certificates.k8s.io", _) => (&IN_CLUSTER, &["spec.signerName"]),
        ("resource.k8s.io", "resourceslices") => (&IN_CLUSTER, &["spec.nodeName", "spec.driver"]),
        _ => return None,
    };
    Some(fields)
}

/// The path that a selector names, if objects of this kind are selected by it.
fn check_field<'a>(kind: &Kind, path: &'a str) -> Result<&'a str, Status> {
    let resource = &kind.resource;
    if event_view::is_view(resource) {
        let stored = event_view::selectable(path);
        return stored.ok_or_else(|| Status::bad_request(format!("field label not supported: {path}")));
    }
    if kind.is_custom() {
        let defined = kind.definition.as_deref().map_or(&[][..], |version| json::list(version, &["selectableFields"]));
        let is_defined = |field: &Value| {
            json::text(field, &["jsonPath"]).is_some_and(|defined| defined.strip_prefix('.') == Some(path))
        };
        if ANYWHERE.contains(&path) || defined.iter().any(is_defined) {
            return Ok(path);
        }
        return Err(Status::bad_request(format!("field label not supported: {path}")));
    }
    let Some((of_metadata, own)) = selectable(resource) else {
        return if ANYWHERE.contains(&path) {
            Ok(path)
        } else {
            Err(Status::bad_request(format!(
                "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )))
        };
    };
    if of_metadata.contains(&path) || own.contains(&path) {
        return Ok(path);
    }
    Err(Status::bad_request(match &*resource.plural {
        // The former name of the field.
        "pods" if path == "spec.host" => return Ok("spec.nodeName"),
        "jobs" => format!("field label {path:?} not supported for Job"),
        "resourceslices" => {
            format!("field label not supported for {}, Kind={}: {path}", resource.api_version(), resource.kind)
        }
        _ => format!("field label not supported: {path}"),
    }))
}

/// The namespace of an object's resource, as lists need it: none for cluster-scoped resources.
pub(crate) fn namespace_of<'a>(resource: &Resource, namespace: Option<&'a str>) -> Option<&'a str> {
    namespace.filter(|_| resource.namespaced)
}
