//! The labels and the spec of a new daemon pod.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kcm_framework::api::views::DaemonSet;
use kcm_framework::api::{Document, EditError};
use serde_json::json;
use serde_json::value::RawValue;

use super::revision::{CurrentRevision, POD_TEMPLATE_GENERATION};
use super::tolerations;
use crate::shared::revisions::POD_REVISION;

/// Where the template requires nodes.
const NODE_SELECTOR_TERMS: &[&str] =
    &["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];

/// A pod template that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidTemplate {
    /// It is not valid JSON, or a part of it is of another type.
    #[error("cannot read the pod template")]
    Json(#[from] serde_json::Error),
    /// Its spec is not an object.
    #[error("cannot read the spec of the pod template")]
    Spec(#[from] kcm_framework::api::DecodeError),
    /// A part of its spec is of another type.
    #[error("cannot edit the spec of the pod template")]
    Edit(#[from] EditError),
}

/// The spec of the pods of a daemon set, with the tolerations that daemons have; the node is missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodSpec(Document);

impl PodSpec {
    /// The spec of the template, as the API server returned it but for the tolerations.
    ///
    /// # Errors
    /// A template that the API server does not return.
    pub(super) fn of(set: &DaemonSet) -> Result<Self, InvalidTemplate> {
        let spec = set.raw(&["spec", "template", "spec"]).map_or("{}", RawValue::get);
        let mut spec = Document::parse(spec)?;
        let tolerations = tolerations::of_pod(set, &spec.items(&["tolerations"])?)?;
        spec.set(&["tolerations"], &tolerations)?;
        Ok(Self(spec))
    }

    /// The spec of a pod for a node: of all nodes, the scheduler can bind it to that one only.
    ///
    /// The terms of the template are replaced. The node meets them, as it should run the daemon.
    ///
    /// # Errors
    /// A template that the API server does not return.
    ///
    /// # Upstream
    /// `util.ReplaceDaemonSetPodNodeNameNodeAffinity`.
    pub(super) fn on(&self, node: &str) -> Result<Box<RawValue>, InvalidTemplate> {
        let by_name = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        let mut spec = self.0.clone();
        spec.set(NODE_SELECTOR_TERMS, &json!([{ "matchFields": [by_name] }]))?;
        Ok(RawValue::from_string(spec.to_string())?)
    }
}

/// The labels of a new pod: those of the template, with the hash and the generation of the template.
///
/// # Errors
/// A template that the API server does not return.
pub(super) fn labels(set: &DaemonSet, revision: &CurrentRevision) -> Result<Box<RawValue>, InvalidTemplate> {
    let template = set.raw(&["spec", "template", "metadata", "labels"]);
    let template: Option<BTreeMap<Cow<'_, str>, Cow<'_, str>>> =
        template.map(|labels| serde_json::from_str(labels.get())).transpose()?.flatten();
    let mut labels = template.unwrap_or_default();
    if let Some(generation) = revision.template_generation {
        labels.insert(POD_TEMPLATE_GENERATION.into(), generation.to_string().into());
    }
    labels.insert(POD_REVISION.into(), revision.hash.as_str().into());
    Ok(serde_json::value::to_raw_value(&labels)?)
}
