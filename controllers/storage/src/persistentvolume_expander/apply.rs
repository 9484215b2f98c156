//! The writes to a claim and its volume.

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use kcm_framework::api::{Document, EditError, ResourceQuantity};
use kcm_framework::client::ApiError;
use kcm_framework::{ReconcileError, Session};
use serde_json::{Value, json};

use super::flex::Step;
use super::plan::{PRE_RESIZE_CAPACITY, capacity, volume_capacity};
use super::status::{finished, in_progress, pending, with_resizer};

/// A write was refused, or a status cannot be edited.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("error updating pvc {claim}: {}", error.message())]
    Claim { claim: String, error: ApiError },
    #[error("error updating pv for pvc {claim}: {}", error.message())]
    Volume { claim: String, error: ApiError },
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl From<WriteError> for ReconcileError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Claim { error, .. } | WriteError::Volume { error, .. } => error.into(),
            WriteError::Edit(error) => error.into(),
        }
    }
}

/// The result of a step that raised no error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A raw block volume has its new size.
    Resized,
    Recorded,
}

pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) claim: &'a PersistentVolumeClaim,
    pub(super) volume: &'a PersistentVolume,
}

impl Writer<'_> {
    /// Names the resizer in the claim. Returns `true` if it was not there.
    pub(super) async fn name_resizer(&self, resizer: &str) -> Result<bool, WriteError> {
        let (_, is_written) = self.put(&self.claim.document, with_resizer(&self.claim.document, resizer)?).await?;
        Ok(is_written)
    }

    /// Records one step of a flex volume of this driver.
    pub(super) async fn record(&self, step: Step, driver: &str) -> Result<Outcome, WriteError> {
        match step {
            Step::Wait => {}
            Step::Finish => {
                let annotations = json!({ PRE_RESIZE_CAPACITY: null });
                self.patch_volume(json!({ "metadata": { "annotations": annotations } })).await?;
            }
            Step::Pend => self.pend(&self.claim.document, None).await?,
            Step::Expand { to } => return self.expand(to, driver).await,
        }
        Ok(Outcome::Recorded)
    }

    async fn expand(&self, to: ResourceQuantity, driver: &str) -> Result<Outcome, WriteError> {
        let claim = &self.claim.document;
        let (claim, _) = self.put(claim, in_progress(claim, driver, to, self.session.now())?).await?;
        // A volume that is larger than the request keeps its capacity.
        let grows = (volume_capacity(self.volume) < to).then_some(to);
        if self.is_block() {
            if let Some(to) = grows {
                self.patch_volume(json!({ "spec": { "capacity": { "storage": to } } })).await?;
            }
            self.put(&claim, finished(&claim, to, self.session.now())?).await?;
            return Ok(Outcome::Resized);
        }
        self.pend(&claim, grows).await?;
        Ok(Outcome::Recorded)
    }

    /// Records in the volume its new capacity and the old capacity of the claim, then in the claim that the kubelet is next.
    async fn pend(&self, claim: &Document, grows: Option<ResourceQuantity>) -> Result<(), WriteError> {
        let mut changes = json!({});
        if let Some(to) = grows {
            changes["spec"] = json!({ "capacity": { "storage": to } });
        }
        if self.volume.annotation(PRE_RESIZE_CAPACITY).is_none() {
            changes["metadata"] = json!({ "annotations": { PRE_RESIZE_CAPACITY: capacity(self.claim).to_string() } });
        }
        if changes != json!({}) {
            self.patch_volume(changes).await?;
        }
        self.put(claim, pending(claim, self.session.now())?).await?;
        Ok(())
    }

    /// Updates the status of the claim from `old` to `new` unless they are equal. Returns the claim with its resource version,
    /// and whether it was written.
    async fn put(&self, old: &Document, mut new: Document) -> Result<(Document, bool), WriteError> {
        if *old == new {
            return Ok((new, false));
        }
        let written = self.session.update_status(self.claim, &new).await;
        let written = written.map_err(|error| WriteError::Claim { claim: self.name(), error })?;
        new.set(&["metadata", "resourceVersion"], &written.resource_version)?;
        Ok((new, true))
    }

    async fn patch_volume(&self, changes: Value) -> Result<(), WriteError> {
        let patched = self.session.merge_patch(self.volume, changes).await;
        patched.map(drop).map_err(|error| WriteError::Volume { claim: self.name(), error })
    }

    fn is_block(&self) -> bool {
        self.volume.raw(&["spec", "volumeMode"]).is_some_and(|mode| mode.get() == "\"Block\"")
    }

    fn name(&self) -> String {
        self.claim.metadata.key.to_string()
    }
}
