//! The plan for a quota: its usage, and whether its status is written.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::views::{ChargedPod, PersistentVolumeClaim, Pod, ResourceClaim, ResourceQuotaView, Service};
use kcm_framework::api::{PartReader, ResourceList, ResourceQuantity};

use super::evaluator::Evaluator;
use super::evaluator::pods::{CountedPod, PodConstraint};
use super::evaluator::resource_claims::{ClaimsContext, DeviceConstraint};
use super::evaluator::scopes::{Requirement, scopes};
use super::evaluator::services::{self, ServiceConstraint};
use super::evaluator::volume_claims::{self, VolumeClaimConstraint};
use super::observe::{Content, Observed};
use super::settings::Gates;

/// The inputs of a plan beside the observed objects.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) gates: Gates,
    pub(super) pods: PartReader<ChargedPod>,
    pub(super) now: Timestamp,
}

/// The plan for a quota.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) action: Action,
    /// The evaluators whose objects are not known, with the reason; their constraints keep their usage.
    pub(super) unavailable: Vec<(Evaluator, &'static str)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Waits for the list of a kind, for this time at most.
    Wait(Duration),
    /// Keeps the status, which is up to date.
    Keep,
    /// Writes the status with this usage and the limits of the spec.
    Update(ResourceList),
}

/// Plans from the observed objects.
///
/// The usage of a constraint is the sum of all evaluators that count for it. If one of them does not know its objects, the
/// constraint keeps its usage.
pub(super) fn plan(quota: &ResourceQuotaView, observed: &Observed, rules: Rules) -> Plan {
    let mut unavailable = Vec::new();
    let mut wait = None;
    for (evaluator, content) in &observed.content {
        match content {
            Content::Listing(patience) => wait = wait.max(Some(*patience)),
            Content::Unavailable(reason) => unavailable.push((evaluator.clone(), *reason)),
            Content::Pods(_)
            | Content::Services(_)
            | Content::VolumeClaims(_)
            | Content::ResourceClaims(..)
            | Content::Objects(_) => {}
        }
    }
    let action = match wait {
        Some(patience) => Action::Wait(patience),
        None => update(quota, used(quota, observed, rules)),
    };
    Plan { action, unavailable }
}

/// Limits and usage are compared by value, so that a status that another client wrote in another notation is kept.
fn update(quota: &ResourceQuotaView, used: ResourceList) -> Action {
    if quota.hard == quota.status_hard && used == quota.status_used { Action::Keep } else { Action::Update(used) }
}

/// Returns the usage of each constraint of the spec. A constraint that no evaluator counts has none.
fn used(quota: &ResourceQuotaView, observed: &Observed, rules: Rules) -> ResourceList {
    let scopes = scopes(quota);
    let usages: Vec<Usage<'_>> =
        observed.content.iter().map(|(_, content)| Usage::of(content, &scopes, rules)).collect();
    let usage = |constraint: &str| {
        let before = quota.status_used.get(constraint);
        let mut sum = None;
        for ((evaluator, _), usage) in observed.content.iter().zip(&usages) {
            if evaluator.evaluates(constraint, &observed.classes, rules.gates) {
                let Some(usage) = usage.of_constraint(constraint, observed, rules) else { return before };
                *sum.get_or_insert_with(ResourceQuantity::default) += usage;
            }
        }
        sum.or(before)
    };
    quota.hard.names().filter_map(|name| Some((name.clone(), usage(name)?))).collect()
}

/// The objects of one evaluator that are in the scopes of a quota.
enum Usage<'a> {
    Pods(Vec<CountedPod<'a>>),
    Services(Vec<&'a Service>),
    VolumeClaims(Vec<&'a PersistentVolumeClaim>),
    ResourceClaims(&'a [Arc<ResourceClaim>], Vec<CountedPod<'a>>),
    Objects(usize),
    Unknown,
}

impl<'a> Usage<'a> {
    fn of(content: &'a Content, scopes: &[Requirement<'_>], rules: Rules) -> Self {
        let gates = rules.gates;
        let counted =
            |pods: &'a [Arc<Pod>]| pods.iter().map(move |pod| CountedPod { pod, fields: &rules.pods.of(pod).fields });
        match content {
            Content::Pods(pods) => {
                Self::Pods(counted(pods).filter(|pod| scopes.iter().all(|scope| pod.is_in(scope, gates))).collect())
            }
            Content::VolumeClaims(claims) => {
                let is_in = |claim: &_| scopes.iter().all(|scope| volume_claims::is_in(claim, scope, gates));
                Self::VolumeClaims(claims.iter().map(|claim| &**claim).filter(|claim| is_in(claim)).collect())
            }
            // Of no other kind any object is in any scope.
            Content::Services(_) if !scopes.is_empty() => Self::Services(Vec::new()),
            Content::ResourceClaims(..) if !scopes.is_empty() => Self::ResourceClaims(&[], Vec::new()),
            Content::Objects(_) if !scopes.is_empty() => Self::Objects(0),
            Content::Services(services) => Self::Services(services.iter().map(|service| &**service).collect()),
            Content::ResourceClaims(claims, pods) => Self::ResourceClaims(claims, counted(pods).collect()),
            Content::Objects(count) => Self::Objects(*count),
            Content::Listing(_) | Content::Unavailable(_) => Self::Unknown,
        }
    }

    /// Returns the usage of a constraint by these objects; `None` if they are not known.
    fn of_constraint(&self, constraint: &str, observed: &Observed, rules: Rules) -> Option<ResourceQuantity> {
        let Rules { gates, now, .. } = rules;
        match self {
            Self::Pods(pods) => {
                let constraint = PodConstraint::parse(constraint)?;
                Some(sum(pods.iter().map(|pod| pod.usage(constraint, gates, now))))
            }
            Self::Services(of_scope) => {
                let constraint = ServiceConstraint::parse(constraint)?;
                Some(sum(of_scope.iter().map(|service| services::usage(service, constraint))))
            }
            Self::VolumeClaims(claims) => {
                let constraint = VolumeClaimConstraint::parse(constraint)?;
                Some(sum(claims.iter().map(|claim| volume_claims::usage(claim, constraint, gates))))
            }
            Self::ResourceClaims(claims, pods) => {
                let constraint = DeviceConstraint::parse(constraint, &observed.classes, gates)?;
                let of_namespace = ClaimsContext { claims, pods, classes: &observed.classes, gates, now };
                Some(of_namespace.usage(constraint))
            }
            Self::Objects(count) => Some(ResourceQuantity::whole(i64::try_from(*count).unwrap_or(i64::MAX))),
            Self::Unknown => None,
        }
    }
}

fn sum(quantities: impl Iterator<Item = ResourceQuantity>) -> ResourceQuantity {
    quantities.fold(ResourceQuantity::default(), |mut sum, quantity| {
        sum += quantity;
        sum
    })
}
