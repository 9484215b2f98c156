//! An object change, as the components of the cluster observe it.

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::Value;

use kcm_sandbox_apiserver::direct::Stored;

/// An object before and after the change; at least one is present.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) key: &'a ObjectKey,
    pub(crate) old: Option<&'a Stored>,
    pub(crate) new: Option<&'a Arc<Value>>,
}
