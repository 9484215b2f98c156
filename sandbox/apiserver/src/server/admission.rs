//! Admission hooks of tests.

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::request::Verb;
use crate::status::Status;
use crate::store::storage::Store;

/// A validated write, as an admission hook receives it.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The verb; a patch counts as an update.
    pub verb: Verb,
    /// Resource of the written object.
    pub resource: &'a Resource,
    /// The subresource, for example `status`.
    pub subresource: Option<&'a str>,
    /// The object's name, after `generateName`.
    pub key: &'a ObjectKey,
    /// The new object; absent for a deletion.
    pub object: Option<&'a Value>,
    /// The stored object; absent for a creation.
    pub old: Option<&'a Value>,
    pub(crate) store: &'a Store,
}

impl Attempt<'_> {
    /// Counts the objects of a resource, in one namespace if given.
    #[must_use]
    pub fn count(&self, resource: &Resource, namespace: Option<&str>) -> usize {
        self.store.list(resource, namespace).count()
    }

    /// Returns the error of a resource quota with `used` of `hard`.
    ///
    /// # Upstream
    /// `apiserver/pkg/admission/plugin/resourcequota`
    #[must_use]
    pub fn exceeded_quota(&self, quota: &str, counted: &str, used: usize, hard: usize) -> Status {
        let why = format!(
            "exceeded quota: {quota}, requested: {counted}=1, used: {counted}={used}, limited: {counted}={hard}"
        );
        Status::forbidden(self.resource, self.key.name(), &why)
    }
}

/// An admission hook; an error rejects the write.
pub(crate) type Hook = Arc<dyn Fn(&Attempt<'_>) -> Result<(), Status> + Send + Sync>;
