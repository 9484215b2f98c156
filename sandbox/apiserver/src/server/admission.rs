//! Hooks that tests put in the way of writes, as admission plugins are.

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use crate::request::Verb;
use crate::status::Status;
use crate::store::storage::Store;

/// A write that has passed validation and is about to take effect.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// What is done; a patch is an update.
    pub verb: Verb,
    /// The resource.
    pub resource: &'a Resource,
    /// The subresource, for example `status`.
    pub subresource: Option<&'a str>,
    /// The object's name, generated where it was asked for.
    pub key: &'a ObjectKey,
    /// The object as it would be stored; absent for a deletion.
    pub object: Option<&'a Value>,
    /// The object as it is stored; absent for a creation.
    pub old: Option<&'a Value>,
    pub(crate) store: &'a Store,
}

impl Attempt<'_> {
    /// How many objects of a resource there are, in one namespace where one is given.
    #[must_use]
    pub fn count(&self, resource: &Resource, namespace: Option<&str>) -> usize {
        self.store.list(resource, namespace).count()
    }

    /// What a resource quota answers once `used` of `hard` are taken.
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

/// A hook: an error refuses the write.
pub(crate) type Hook = Box<dyn Fn(&Attempt<'_>) -> Result<(), Status> + Send + Sync>;
