//! The request that writes.

use kcm_framework::Session;
use kcm_framework::client::{ApiError, Patch};

use super::policy::Policy;
use super::status::{FIELD_MANAGER, body};
use super::warnings::Warning;

/// Applies the result of a check to the status of a policy, unless it was deleted or recreated meanwhile.
pub(super) async fn apply_status(session: &Session, policy: &Policy, warnings: &[Warning]) -> Result<(), ApiError> {
    let metadata = &policy.metadata;
    let configuration = body(metadata.key.name(), &metadata.uid.to_string(), metadata.generation, warnings);
    match session.patch_status(policy, Patch::apply(FIELD_MANAGER, &configuration)).await {
        // The event of the deletion, or of the creation, enqueues the key.
        Err(error) if error.is_not_found() || error.is_other_object() => Ok(()),
        written => written.map(drop),
    }
}
