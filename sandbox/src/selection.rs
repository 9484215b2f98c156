//! Which objects a list or watch is about: namespace, labels and fields.

use kcm_api::{InvalidSelector, Labels, ObjectKey, Resource, Selector};
use serde_json::Value;

use crate::kinds::{Behaviour, Kind};
use crate::object;
use crate::status::Status;

/// Everything that an object must be to be listed or watched.
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
    /// Reads the selectors of a request.
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

    /// Whether only the namespace limits what is selected.
    pub(crate) fn has_selectors(&self) -> bool {
        self.labels.is_some() || !self.fields.is_empty()
    }

    /// Narrows the selection to one name.
    pub(crate) fn require_name(&mut self, name: &str) {
        let path = vec!["metadata".to_owned(), "name".to_owned()];
        self.fields.push(FieldRequirement { path, value: name.to_owned(), equal: true });
    }

    pub(crate) fn matches(&self, key: &ObjectKey, object: &Value) -> bool {
        (self.namespace.is_none() || key.namespace() == self.namespace.as_deref())
            && self.labels.as_ref().is_none_or(|selector| selector.matches(&labels_of(object)))
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }
}

impl FieldRequirement {
    fn matches(&self, object: &Value) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let found = object::at(object, &path);
        let text =
            found.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        (text == self.value) == self.equal
    }
}

/// The labels in the metadata of an object or a template.
pub(crate) fn labels_of(object: &Value) -> Labels {
    let labels = object::at(object, &["metadata", "labels"]).and_then(Value::as_object);
    labels.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}

fn parse_labels(text: &str) -> Result<Selector, Status> {
    text.parse().map_err(|error: InvalidSelector| Status::bad_request(format!("unable to parse requirement: {error}")))
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

/// The namespace of an object's resource, as lists need it: none for cluster-scoped resources.
pub(crate) fn namespace_of<'a>(resource: &Resource, namespace: Option<&'a str>) -> Option<&'a str> {
    namespace.filter(|_| resource.namespaced)
}
