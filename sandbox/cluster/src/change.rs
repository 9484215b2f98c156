//! A change as the parts of the cluster see it.

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use kcm_sandbox_apiserver::direct::Stored;

/// An object before and after; one of the two is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) key: &'a ObjectKey,
    pub(crate) old: Option<&'a Stored>,
    pub(crate) new: Option<&'a Arc<Value>>,
}
