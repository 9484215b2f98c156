//! The pods that an object creates from its template.

use std::borrow::Cow;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{Document, KnownView, OwnerReference, Resource};
use kcm_framework::ownership::Owner;
use serde::Serialize;
use serde_json::value::RawValue;

use super::generate_name;

const POD: &Resource = &Pod::RESOURCE;

/// The parts of a pod template that are copied to every pod, as the API server returned them.
///
/// Other metadata of the template, such as a name or owner references, is not copied.
pub(crate) struct PodTemplate<'a> {
    labels: Option<Cow<'a, RawValue>>,
    annotations: Option<&'a RawValue>,
    finalizers: Option<&'a RawValue>,
    spec: Option<&'a RawValue>,
    namespace: &'a str,
    generate_name: String,
    owner: OwnerReference,
}

impl<'a> PodTemplate<'a> {
    /// Returns the template of `owner`, whose JSON is `document`.
    pub(crate) fn of<V: KnownView>(owner: &'a V, document: &'a Document) -> Self {
        let key = &owner.meta().key;
        let metadata = |name| document.raw(&["spec", "template", "metadata", name]);
        Self {
            labels: metadata("labels").map(Cow::Borrowed),
            annotations: metadata("annotations"),
            finalizers: metadata("finalizers"),
            spec: document.raw(&["spec", "template", "spec"]),
            namespace: key.namespace().unwrap_or_default(),
            generate_name: generate_name(key),
            owner: Owner::of(owner).reference(),
        }
    }

    /// Replaces the labels.
    pub(crate) fn with_labels(self, labels: Box<RawValue>) -> Self {
        Self { labels: Some(Cow::Owned(labels)), ..self }
    }

    /// Returns a new pod.
    pub(crate) fn pod<'b>(&'b self, name: &'b str) -> impl Serialize {
        self.pod_with_spec(name, self.spec)
    }

    /// Returns a new pod with another spec.
    pub(crate) fn pod_with_spec<'b>(&'b self, name: &'b str, spec: Option<&'b RawValue>) -> impl Serialize {
        NewPod {
            api_version: POD.api_version(),
            kind: &POD.kind,
            metadata: NewMeta {
                name,
                generate_name: &self.generate_name,
                namespace: self.namespace,
                labels: self.labels.as_deref(),
                annotations: self.annotations,
                finalizers: self.finalizers,
                owner_references: [&self.owner],
            },
            spec,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewPod<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMeta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMeta<'a> {
    name: &'a str,
    generate_name: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<&'a RawValue>,
    owner_references: [&'a OwnerReference; 1],
}
