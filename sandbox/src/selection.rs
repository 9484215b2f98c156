//! Which objects a list or watch is about: namespace, labels and fields.

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::kinds::{Behaviour, Kind};
use crate::object;
use crate::status::Status;

/// Everything that an object must be to be listed or watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    path: Vec<String>,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selection {
    /// Reads the selectors of a request.
    pub(crate) fn parse(
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Status> {
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: labels.map_or(Ok(Vec::new()), parse_labels)?,
            fields: fields.map_or(Ok(Vec::new()), |text| parse_fields(kind, text))?,
        })
    }

    /// Whether only the namespace limits what is selected.
    pub(crate) fn has_selectors(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Narrows the selection to one name.
    pub(crate) fn require_name(&mut self, name: &str) {
        let path = vec!["metadata".to_owned(), "name".to_owned()];
        self.fields.push(FieldRequirement { path, value: name.to_owned(), equal: true });
    }

    pub(crate) fn matches(&self, key: &ObjectKey, object: &Value) -> bool {
        (self.namespace.is_none() || key.namespace() == self.namespace.as_deref())
            && self.labels.iter().all(|requirement| requirement.matches(object))
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }
}

impl FieldRequirement {
    fn matches(&self, object: &Value) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let found = object::at(object, &path);
        let text = found.map_or_else(String::new, |value| {
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        });
        (text == self.value) == self.equal
    }
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldRequirement>, Status> {
    let mut requirements = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (path, value, true)
        } else {
            return Err(Status::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'")));
        };
        check_field(kind, path)?;
        requirements.push(FieldRequirement {
            path: path.split('.').map(str::to_owned).collect(),
            value: value.to_owned(),
            equal,
        });
    }
    Ok(requirements)
}

/// The fields that upstream selects by, beside name and namespace.
fn check_field(kind: &Kind, path: &str) -> Result<(), Status> {
    let own: &[&str] = match kind.behaviour {
        Behaviour::Pod => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        Behaviour::Namespace => &["status.phase"],
        Behaviour::ReplicaSet => &["status.replicas"],
        Behaviour::Plain if kind.resource == crate::kinds::EVENTS => &[
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
        Behaviour::Deployment | Behaviour::Plain | Behaviour::Custom => &[],
    };
    if ["metadata.name", "metadata.namespace"].contains(&path) || own.contains(&path) {
        return Ok(());
    }
    Err(Status::bad_request(if own.is_empty() {
        format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {path}")
    }))
}

impl LabelRequirement {
    fn matches(&self, object: &Value) -> bool {
        let value = |key: &str| object::text(object, &["metadata", "labels", key]);
        match self {
            Self::In(key, values) => value(key).is_some_and(|value| values.iter().any(|known| known == value)),
            Self::NotIn(key, values) => !value(key).is_some_and(|value| values.iter().any(|known| known == value)),
            Self::Exists(key) => value(key).is_some(),
            Self::Absent(key) => value(key).is_none(),
        }
    }
}

fn parse_labels(text: &str) -> Result<Vec<LabelRequirement>, Status> {
    let unreadable = |term: &str| {
        Status::bad_request(format!("unable to parse requirement: found '{term}', expected: a label requirement"))
    };
    split_terms(text).into_iter().map(|term| parse_label(term).ok_or_else(|| unreadable(term))).collect()
}

/// Splits at the commas that stand outside of parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
    .collect()
}

fn parse_label(term: &str) -> Option<LabelRequirement> {
    let key_of = |text: &str| {
        let key = text.trim();
        (!key.is_empty() && !key.contains(char::is_whitespace)).then(|| key.to_owned())
    };
    if let Some(rest) = term.strip_suffix(')') {
        let (head, values) = rest.split_once('(')?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let head = head.trim();
        return if let Some(key) = head.strip_suffix(" notin") {
            Some(LabelRequirement::NotIn(key_of(key)?, values))
        } else {
            Some(LabelRequirement::In(key_of(head.strip_suffix(" in")?)?, values))
        };
    }
    if let Some((key, value)) = term.split_once("!=") {
        return Some(LabelRequirement::NotIn(key_of(key)?, vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(LabelRequirement::In(key_of(key)?, vec![value.trim().to_owned()]));
    }
    match term.strip_prefix('!') {
        Some(key) => Some(LabelRequirement::Absent(key_of(key)?)),
        None => Some(LabelRequirement::Exists(key_of(term)?)),
    }
}

/// The namespace of an object's resource, as lists need it: none for cluster-scoped resources.
pub(crate) fn namespace_of<'a>(resource: &Resource, namespace: Option<&'a str>) -> Option<&'a str> {
    namespace.filter(|_| resource.namespaced)
}
