//! The pods and claims that a stateful set creates from its templates.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, StatefulSet};
use kcm_framework::api::{Document, EditError, KnownView as _, OwnerReference, Resource};
use kcm_framework::ownership::Owner;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::identity::{POD_INDEX, POD_NAME, claim_name, pod_name};
use super::revisions::Revision;
use crate::shared::revisions::POD_REVISION;

/// A template that no object can be created from.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidTemplate {
    /// It is not valid JSON of its kind.
    #[error("cannot read the template")]
    Json(#[from] serde_json::Error),
    /// It is not valid JSON of its kind.
    #[error("cannot read the spec of the template")]
    Decode(#[from] kcm_framework::api::DecodeError),
    /// A field of it cannot be set.
    #[error("cannot set a field of the template")]
    Edit(#[from] EditError),
    /// It is absent.
    #[error("there is no template")]
    Absent,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    metadata: Option<TemplateMetadata<'a>>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

/// The metadata of a template that its objects have. Other metadata, such as a name, is not copied.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct TemplateMetadata<'a> {
    labels: Option<BTreeMap<String, String>>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    finalizers: Option<&'a RawValue>,
    #[serde(borrow)]
    owner_references: Option<Vec<&'a RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewObject<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMetadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    generate_name: Option<String>,
    namespace: &'a str,
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owner_references: Vec<Box<RawValue>>,
}

fn new_object(
    resource: &Resource,
    metadata: NewMetadata<'_>,
    spec: Option<Box<RawValue>>,
) -> Result<String, InvalidTemplate> {
    let object = NewObject { api_version: resource.api_version(), kind: &resource.kind, metadata, spec };
    Ok(serde_json::to_string(&object)?)
}

/// The JSON of the pod of an ordinal and a revision.
///
/// Its name, its host name and two labels have its identity, its subdomain is the governing service, and its volumes have
/// its claims in the place of those that the template has by the same names.
///
/// # Errors
/// A template of the revision that cannot be read.
pub(super) fn new_pod(set: &StatefulSet, revision: &Revision, ordinal: i64) -> Result<String, InvalidTemplate> {
    let template = revision.data.template().ok_or(InvalidTemplate::Absent)?;
    let Template { metadata, spec } = serde_json::from_str(template.get())?;
    let TemplateMetadata { labels, annotations, finalizers, owner_references: _ } = metadata.unwrap_or_default();
    let set_name = set.metadata.key.name();
    let name = pod_name(set_name, ordinal);
    let mut labels = labels.unwrap_or_default();
    labels.insert(POD_NAME.to_owned(), name.clone());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    labels.insert(POD_REVISION.to_owned(), revision.name.clone());

    let mut spec = Document::parse(spec.map_or("{}", RawValue::get))?;
    spec.set(&["hostname"], &name)?;
    match set.raw(&["spec", "serviceName"]).filter(|service| service.get() != "\"\"") {
        Some(service) => spec.set(&["subdomain"], service)?,
        None => spec.remove(&["subdomain"])?,
    }
    if !set.claim_templates.is_empty() {
        let volumes = volumes(set, ordinal, &spec)?;
        spec.set(&["volumes"], &volumes)?;
    }

    let metadata = NewMetadata {
        name: &name,
        generate_name: Some(format!("{set_name}-")),
        namespace: set.metadata.key.namespace().unwrap_or_default(),
        labels,
        annotations,
        finalizers,
        owner_references: vec![serde_json::value::to_raw_value(&Owner::of(set).reference())?],
    };
    new_object(const { &Pod::RESOURCE }, metadata, Some(RawValue::from_string(spec.as_str().to_owned())?))
}

/// The volumes of a pod: first those of its claims, then those of the template by other names.
fn volumes(set: &StatefulSet, ordinal: i64, spec: &Document) -> Result<Vec<Box<RawValue>>, InvalidTemplate> {
    #[derive(Deserialize)]
    struct Volume {
        name: Option<String>,
    }

    let claimed: BTreeSet<&str> = set.claim_templates.iter().map(|name| &**name).collect();
    let mut volumes = Vec::new();
    for template in &set.claim_templates {
        volumes.push(serde_json::value::to_raw_value(&claim_volume(set, template, ordinal))?);
    }
    for volume in spec.items(&["volumes"])? {
        let Volume { name } = serde_json::from_str(volume.get())?;
        if !claimed.contains(name.unwrap_or_default().as_str()) {
            volumes.push(volume.to_owned());
        }
    }
    Ok(volumes)
}

/// The volume that a pod has for a claim template.
pub(super) fn claim_volume(set: &StatefulSet, template: &str, ordinal: i64) -> serde_json::Value {
    let claim = claim_name(template, set.metadata.key.name(), ordinal);
    json!({ "name": template, "persistentVolumeClaim": { "claimName": claim } })
}

/// The JSON of the claim that the pod of an ordinal has for the claim template of that index.
///
/// # Errors
/// A claim template that cannot be read.
pub(super) fn new_claim(
    set: &StatefulSet,
    template: usize,
    ordinal: i64,
    owner: Option<OwnerReference>,
) -> Result<String, InvalidTemplate> {
    let templates = set.document.items(&["spec", "volumeClaimTemplates"])?;
    let json = templates.get(template).ok_or(InvalidTemplate::Absent)?;
    let Template { metadata, spec } = serde_json::from_str(json.get())?;
    let TemplateMetadata { labels, annotations, finalizers, owner_references } = metadata.unwrap_or_default();
    let mut labels = labels.unwrap_or_default();
    if let Some(selected) = set.raw(&["spec", "selector", "matchLabels"]) {
        labels.extend(serde_json::from_str::<Option<BTreeMap<String, String>>>(selected.get())?.unwrap_or_default());
    }
    let mut owners: Vec<_> = owner_references.unwrap_or_default().into_iter().map(RawValue::to_owned).collect();
    if let Some(owner) = owner.filter(|_| owners.is_empty()) {
        owners.push(serde_json::value::to_raw_value(&owner)?);
    }
    let name = set.claim_templates.get(template).ok_or(InvalidTemplate::Absent)?;
    let metadata = NewMetadata {
        name: &claim_name(name, set.metadata.key.name(), ordinal),
        generate_name: None,
        namespace: set.metadata.key.namespace().unwrap_or_default(),
        labels,
        annotations,
        finalizers,
        owner_references: owners,
    };
    new_object(const { &PersistentVolumeClaim::RESOURCE }, metadata, spec.map(RawValue::to_owned))
}
