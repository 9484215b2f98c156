//! The data of a revision: the patch of an owner that restores a pod template.

use std::fmt;

use kcm_framework::api::views::ControllerRevision;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::defaults::set_defaults;
use super::go_json::go_json;

/// The data of a revision: `{"spec":{"template":{"$patch":"replace",…}}}`, as upstream writes it.
///
/// Two revisions of one owner are equal if their data is, byte for byte.
///
/// # Upstream
/// `getPatch` encodes its own types, reads them into a map and writes that, so that keys are sorted. The API server
/// returns the same fields: it encodes the same types.
#[derive(Clone)]
pub(crate) struct RevisionData(Box<RawValue>);

/// A template that is no JSON object, or is nested too deeply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidTemplate {
    /// It is not valid JSON.
    #[error("cannot read the pod template")]
    Json(#[from] serde_json::Error),
    /// It is absent or no object.
    #[error("the pod template is not an object")]
    NotAnObject,
}

impl RevisionData {
    /// The data of a new revision for a pod template.
    ///
    /// # Errors
    /// A template that is not an object; the API server returns none.
    pub(crate) fn of(template: Option<&RawValue>) -> Result<Self, InvalidTemplate> {
        let template = template.ok_or(InvalidTemplate::NotAnObject)?;
        Self::of_value(serde_json::from_str(template.get())?)
    }

    fn of_value(mut template: Value) -> Result<Self, InvalidTemplate> {
        let members = template.as_object_mut().ok_or(InvalidTemplate::NotAnObject)?;
        members.insert("$patch".to_owned(), json!("replace"));
        let data = go_json(&json!({ "spec": { "template": template } }));
        Ok(Self(RawValue::from_string(data)?))
    }

    /// Data without a template, of which no pod can be created.
    pub(crate) fn empty() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// The data of an existing revision; absent if it has none, which the API server rejects.
    pub(crate) fn of_revision(revision: &ControllerRevision) -> Option<Self> {
        revision.data().map(|data| Self(data.to_owned()))
    }

    /// Whether an existing revision has this data.
    pub(crate) fn is_of(&self, revision: &ControllerRevision) -> bool {
        revision.data().is_some_and(|data| data.get() == self.as_str())
    }

    /// The JSON.
    pub(crate) fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The JSON, to be put into something that is serialized.
    pub(crate) fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The pod template that the patch restores. Its member `$patch` is no field of a template.
    pub(crate) fn template(&self) -> Option<Box<RawValue>> {
        let mut patch: Patch<'_> = serde_json::from_str(self.as_str()).ok()?;
        patch.spec.take()?.template.map(RawValue::to_owned)
    }

    /// The data as it is for an owner to which this data is applied, and the defaults of Kubernetes 1.37 after it.
    ///
    /// Data of an earlier release lacks fields that later ones have a default for. Such a template is the same as one that
    /// has the default.
    ///
    /// # Upstream
    /// Gate `StatefulSetSemanticRevisionComparison`.
    pub(crate) fn with_defaults(&self) -> Option<Self> {
        let mut template: Value = serde_json::from_str(self.template()?.get()).ok()?;
        set_defaults(&mut template);
        Self::of_value(template).ok()
    }
}

impl PartialEq for RevisionData {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RevisionData {}

impl fmt::Debug for RevisionData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(serde::Deserialize)]
struct Patch<'a> {
    #[serde(borrow)]
    spec: Option<PatchSpec<'a>>,
}

#[derive(serde::Deserialize)]
struct PatchSpec<'a> {
    #[serde(borrow)]
    template: Option<&'a RawValue>,
}
