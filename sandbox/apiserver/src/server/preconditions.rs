//! Checks of a write against its target: name and namespace of the path, and preconditions on uid and version.

use kcm_api::Resource;
use serde_json::Value;

use crate::json;
use crate::request::Target;
use crate::status::Status;

pub(crate) const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// Rejects an object whose name or namespace differs from the path.
pub(crate) fn check_identity(target: &Target, object: &Value) -> Result<(), Status> {
    let namespace = json::text(object, &["metadata", "namespace"]).filter(|namespace| !namespace.is_empty());
    if namespace.is_some_and(|namespace| target.namespace.as_deref().is_some_and(|path| path != namespace)) {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    let (given, name) = (json::name(object), target.name.as_deref().unwrap_or_default());
    if given.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// The error for a failed uid or resource version precondition.
pub(crate) fn precondition_failed(
    resource: &Resource,
    name: &str,
    storage_key: &str,
    what: &str,
    given: &str,
    stored: &str,
) -> Status {
    Status::conflict(
        resource,
        name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: {storage_key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {given}, {what} in object meta: {stored}"
        ),
    )
}
