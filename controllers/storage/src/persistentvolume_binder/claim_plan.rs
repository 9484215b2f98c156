//! The plan for a claim. Pure.

use std::sync::Arc;

use kcm_framework::api::InvalidSelector;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};

use super::events::BinderEvent;
use super::matching::check_named;
use super::view::StorageClass;
use super::vocabulary::{
    Annotations, BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, class_of_claim, is_bound_to, names_class,
};

/// Objects that decide about a claim, besides the claim itself.
pub(super) trait Surroundings {
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    fn best_match(
        &self,
        claim: &PersistentVolumeClaim,
        is_delayed: bool,
    ) -> Result<Option<Arc<PersistentVolume>>, InvalidSelector>;
    fn class(&self, name: &str) -> Option<Arc<StorageClass>>;
    /// Name of the default class.
    fn default_class(&self) -> Option<String>;
    /// Names of the active Pods that use the claim and have no node.
    fn unscheduled_pods(&self, claim: &PersistentVolumeClaim) -> Vec<String>;
}

/// The origin of the volume that a claim is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// The best match. Its end is the end of a provisioning.
    Matched,
    /// The volume that the claim names.
    Named,
    /// The volume that the claim was bound to before.
    Again,
}

/// The reason that a claim has no volume yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// No volume matches, and the claim has no class.
    ForVolume,
    /// The claim is bound once a Pod uses it.
    ForConsumer,
    /// The volume that it names does not exist.
    ForNamedVolume,
    /// The volume that it names does not satisfy it.
    Mismatch,
    /// The volume that it names belongs to another claim.
    OtherClaim,
}

/// The plan for a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClaimPlan {
    /// Binds the claim to the volume, in four writes.
    Bind(Arc<PersistentVolume>, Binding),
    /// The status becomes `Pending`.
    Pending(Waiting, Option<BinderEvent>),
    /// The status becomes `Lost`, with an event if that is new.
    Lost(BinderEvent),
    /// The claim gets the default class.
    AssignClass(String),
    /// A volume is provisioned.
    Provision,
    /// The claim names a volume of another claim, which a controller has chosen for it.
    Invalid(BinderEvent, InvalidBinding),
}

/// A claim that names a volume of another claim, which a controller has chosen for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid binding of claim {claim:?} to volume {volume:?}: volume already claimed by {by:?}")]
pub(super) struct InvalidBinding {
    claim: String,
    volume: String,
    by: String,
}

/// A claim for which nothing can be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unplannable {
    #[error("error finding PV for claim {claim:?}: {source}")]
    Selector { claim: String, source: InvalidSelector },
    #[error("VolumeBindingMode not set for StorageClass {0:?}")]
    NoBindingMode(String),
}

/// Plans for a claim.
///
/// # Upstream
/// `syncUnboundClaim` and `syncBoundClaim`
pub(super) fn plan(
    claim: &PersistentVolumeClaim,
    annotations: &Annotations<'_>,
    surroundings: &impl Surroundings,
) -> Result<ClaimPlan, Unplannable> {
    if annotations.has(BIND_COMPLETED) {
        return Ok(plan_bound(claim, surroundings));
    }
    if claim.volume_name.is_empty() {
        plan_unbound(claim, annotations, surroundings)
    } else {
        Ok(plan_named(claim, annotations, surroundings))
    }
}

fn plan_unbound(
    claim: &PersistentVolumeClaim,
    annotations: &Annotations<'_>,
    surroundings: &impl Surroundings,
) -> Result<ClaimPlan, Unplannable> {
    let class = class_of_claim(claim);
    let is_delayed = is_delayed(class, surroundings)?;
    let found = surroundings.best_match(claim, is_delayed);
    let found = found.map_err(|source| Unplannable::Selector { claim: claim.metadata.key.to_string(), source })?;
    if let Some(volume) = found {
        return Ok(ClaimPlan::Bind(volume, Binding::Matched));
    }
    if !names_class(claim)
        && let Some(default) = surroundings.default_class()
    {
        return Ok(ClaimPlan::AssignClass(default));
    }
    Ok(if is_delayed && !annotations.has(SELECTED_NODE) {
        let pods = surroundings.unscheduled_pods(claim);
        ClaimPlan::Pending(Waiting::ForConsumer, Some(BinderEvent::waits_for_consumer(&pods)))
    } else if class.is_empty() {
        ClaimPlan::Pending(Waiting::ForVolume, Some(BinderEvent::no_volume()))
    } else {
        ClaimPlan::Provision
    })
}

/// Returns `true` if claims of the class are bound once a Pod uses them.
fn is_delayed(class: &str, surroundings: &impl Surroundings) -> Result<bool, Unplannable> {
    if class.is_empty() {
        return Ok(false);
    }
    match surroundings.class(class) {
        None => Ok(false),
        Some(class) if class.binding_mode.is_empty() => {
            Err(Unplannable::NoBindingMode(class.metadata.key.name().to_owned()))
        }
        Some(class) => Ok(class.binding_mode == "WaitForFirstConsumer"),
    }
}

fn plan_named(
    claim: &PersistentVolumeClaim,
    annotations: &Annotations<'_>,
    surroundings: &impl Surroundings,
) -> ClaimPlan {
    let name = &*claim.volume_name;
    let Some(volume) = surroundings.volume(name) else { return ClaimPlan::Pending(Waiting::ForNamedVolume, None) };
    let Some(reference) = &volume.claim else {
        return match check_named(&volume, claim) {
            Ok(()) => ClaimPlan::Bind(volume, Binding::Named),
            Err(error) => ClaimPlan::Pending(Waiting::Mismatch, Some(BinderEvent::cannot_bind(name, &error))),
        };
    };
    if is_bound_to(&volume, claim) {
        return ClaimPlan::Bind(volume, Binding::Named);
    }
    let event = BinderEvent::already_bound(name);
    if !annotations.has(BOUND_BY_CONTROLLER) {
        return ClaimPlan::Pending(Waiting::OtherClaim, Some(event));
    }
    let by = format!("{}/{}", reference.namespace, reference.name);
    let error = InvalidBinding { claim: claim.metadata.key.to_string(), volume: name.to_owned(), by };
    ClaimPlan::Invalid(event, error)
}

fn plan_bound(claim: &PersistentVolumeClaim, surroundings: &impl Surroundings) -> ClaimPlan {
    if claim.volume_name.is_empty() {
        return ClaimPlan::Lost(BinderEvent::lost_reference());
    }
    let Some(volume) = surroundings.volume(&claim.volume_name) else {
        return ClaimPlan::Lost(BinderEvent::lost_volume());
    };
    match &volume.claim {
        Some(reference) if reference.uid != claim.metadata.uid => ClaimPlan::Lost(BinderEvent::misbound()),
        Some(_) | None => ClaimPlan::Bind(volume, Binding::Again),
    }
}

impl ClaimPlan {
    /// Returns the decision in a sentence.
    pub(super) fn explain(&self) -> String {
        match self {
            Self::Bind(volume, Binding::Matched) => format!("binds it to {}, the best match", volume.metadata.key),
            Self::Bind(volume, Binding::Named) => format!("binds it to {}, which it names", volume.metadata.key),
            Self::Bind(volume, Binding::Again) => format!("keeps it bound to {}", volume.metadata.key),
            Self::Pending(Waiting::ForVolume, _) => {
                "waits for a volume: none matches, and it has no storage class".to_owned()
            }
            Self::Pending(Waiting::ForConsumer, event) => {
                let message = event.as_ref().map_or_else(String::new, |event| event.message.to_string());
                format!("waits: its class binds late; {message}")
            }
            Self::Pending(Waiting::ForNamedVolume, _) => {
                "waits for the volume that it names, which does not exist".to_owned()
            }
            Self::Pending(Waiting::Mismatch | Waiting::OtherClaim, event) => {
                let message = event.as_ref().map_or_else(String::new, |event| event.message.to_string());
                format!("waits: {message}")
            }
            Self::Lost(event) => format!("is lost: {}", event.message),
            Self::AssignClass(class) => format!("assigns the default class {class}"),
            Self::Provision => "has a volume provisioned: none matches".to_owned(),
            Self::Invalid(_, error) => error.to_string(),
        }
    }
}
