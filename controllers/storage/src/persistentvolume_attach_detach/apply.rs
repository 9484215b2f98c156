//! The writes to attachments, and to the status of nodes.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Node;
use kcm_framework::client::{ApiError, Patch, Payload};
use kcm_framework::{Delete, Session};
use serde_json::{Value, json};

use super::names::{self, Plugin};
use super::view::VolumeAttachment;
use super::volume::Attachable;

/// Reason why an attachment was not created.
#[derive(Debug)]
pub(super) enum AttachError {
    /// The API server refused it. `cause` is set if the attachment may exist all the same.
    Refused { message: String, cause: Option<ApiError> },
    /// There was no response.
    Unanswered(ApiError),
}

/// Creates the attachment of a volume to a node. An attachment that exists already is no error: volume and
/// node decide its name.
pub(super) async fn attach(volume: &Attachable, node: &str, session: &Session) -> Result<(), AttachError> {
    let Plugin::Csi { driver, handle } = Plugin::of(&volume.unique_name) else { return Ok(()) };
    let name = names::attachment(driver, handle, node);
    let source = match &volume.inline {
        Some(spec) => json!({ "inlineVolumeSpec": spec }),
        None => json!({ "persistentVolumeName": volume.spec_name }),
    };
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": { "name": name },
        "spec": { "attacher": driver, "nodeName": node, "source": source },
    });
    let created =
        session.create::<VolumeAttachment>(&ObjectKey::cluster_scoped(name), Payload::json(&attachment)).await;
    match created {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_exists() || error.is_probably_created() => Ok(()),
        Err(error) if error.status().is_none() => Err(AttachError::Unanswered(error)),
        Err(error) => {
            let message = format!("kubernetes.io/csi: attacher.Attach failed: {}", error.message());
            Err(AttachError::Refused { message, cause: error.response_lost().then_some(error) })
        }
    }
}

/// Deletes an attachment. An attachment that does not exist any more is no error.
pub(super) async fn delete(attachment: &VolumeAttachment, session: &Session) -> Result<(), ApiError> {
    session.delete(attachment, Delete::default()).await.map(drop)
}

/// Patches the report of a node. The patch carries the uid of the node.
pub(super) async fn write_report(node: &Node, patch: &Value, session: &Session) -> Result<(), ApiError> {
    session.patch_status(node, Patch::Strategic(Payload::json(patch))).await.map(drop)
}
