//! Objects that one reconcile writes several times, each write based on the one before.

use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim, VolumePhase};
use kcm_framework::api::{Document, EditError, KnownView, ResourceVersion};
use kcm_framework::client::{ApiError, Written};
use kcm_framework::{ReconcileError, Session};

use super::edits::{self, Edit, InvalidEdit};
use super::reservations::Reserved;

/// A write that did not take place.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Edit(#[from] InvalidEdit),
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl From<EditError> for WriteError {
    fn from(error: EditError) -> Self {
        Self::Edit(error.into())
    }
}

impl From<WriteError> for ReconcileError {
    fn from(error: WriteError) -> Self {
        match error {
            // The object must change before it can be edited.
            WriteError::Edit(error) => Self::terminal(error),
            WriteError::Api(error) => error.into(),
        }
    }
}

/// Returns `true` if the API server has refused a request for good, so that repeating it does not help soon. Conflicts, a
/// busy server and lost responses are no refusals.
pub(super) fn is_refused(error: &ApiError) -> bool {
    error.status().is_some_and(|status| (400..500).contains(&status.code) && ![408, 409, 429].contains(&status.code))
}

async fn write<V: KnownView>(
    object: &V,
    document: &mut Document,
    session: &Session,
    edit: Edit,
    is_status: bool,
) -> Result<Option<ResourceVersion>, WriteError> {
    let Some(mut changed) = edit? else { return Ok(None) };
    let Written { resource_version, .. } = if is_status {
        session.update_status(object, &changed).await?
    } else {
        session.update(object, &changed).await?
    };
    changed.set(&["metadata", "resourceVersion"], &resource_version)?;
    *document = changed;
    Ok(Some(resource_version))
}

/// A claim and its last state.
pub(super) struct ClaimDraft {
    pub(super) claim: Arc<PersistentVolumeClaim>,
    pub(super) document: Document,
}

impl ClaimDraft {
    pub(super) fn new(claim: &Arc<PersistentVolumeClaim>) -> Self {
        Self { claim: Arc::clone(claim), document: claim.document.clone() }
    }

    /// Updates the claim. Returns `true` if there was a change to write.
    pub(super) async fn update(&mut self, session: &Session, edit: Edit) -> Result<bool, WriteError> {
        Ok(write(&*self.claim, &mut self.document, session, edit, false).await?.is_some())
    }

    /// Updates the status of the claim. Returns `true` if there was a change to write.
    pub(super) async fn update_status(&mut self, session: &Session, edit: Edit) -> Result<bool, WriteError> {
        Ok(write(&*self.claim, &mut self.document, session, edit, true).await?.is_some())
    }
}

/// A volume and its last state.
pub(super) struct VolumeDraft<'a> {
    pub(super) volume: Arc<PersistentVolume>,
    pub(super) document: Document,
    reserved: &'a Reserved,
}

impl<'a> VolumeDraft<'a> {
    pub(super) fn new(volume: &Arc<PersistentVolume>, reserved: &'a Reserved) -> Self {
        Self { volume: Arc::clone(volume), document: volume.document.clone(), reserved }
    }

    /// Continues with the live state of a volume whose `cached` state has been changed by others.
    pub(super) fn of_live(live: &Arc<PersistentVolume>, cached: &Self) -> Self {
        Self::new(live, cached.reserved)
    }

    /// Updates the volume. Returns `true` if there was a change to write.
    pub(super) async fn update(&mut self, session: &Session, edit: Edit) -> Result<bool, WriteError> {
        let written = write(&*self.volume, &mut self.document, session, edit, false).await?;
        Ok(self.note(written.as_ref()))
    }

    /// Updates the phase of the volume. Returns `true` if it is another one.
    pub(super) async fn set_phase(
        &mut self,
        session: &Session,
        phase: VolumePhase,
        message: &str,
    ) -> Result<bool, WriteError> {
        let edit = edits::volume_phase(&self.document, self.volume.phase, phase, message);
        let written = write(&*self.volume, &mut self.document, session, edit, true).await?;
        Ok(self.note(written.as_ref()))
    }

    fn note(&self, written: Option<&ResourceVersion>) -> bool {
        if let Some(version) = written {
            self.reserved.written(version);
        }
        written.is_some()
    }
}
