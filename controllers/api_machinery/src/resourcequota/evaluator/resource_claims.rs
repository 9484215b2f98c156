//! Resource claims, and the devices that they request.
//!
//! A device also counts as the extended resource of its class, unless the pod for which the scheduler made the claim is
//! charged for it already.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{DeviceClass, Pod, ResourceClaim};
use kcm_framework::api::{InternedStr, ResourceQuantity};

use super::pods::{CountedPod, DEVICE_CLASS, PodConstraint, REQUESTS, is_extended_resource};
use crate::resourcequota::settings::Gates;

/// The device classes, and their extended resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::resourcequota) struct DeviceClasses(BTreeMap<String, Option<InternedStr>>);

impl DeviceClasses {
    pub(in crate::resourcequota) fn of(classes: &[Arc<DeviceClass>]) -> Self {
        let name = |class: &DeviceClass| class.metadata.key.name().to_owned();
        let resource = |class: &DeviceClass| class.extended_resource_name.clone().filter(|name| !name.is_empty());
        Self(classes.iter().map(|class| (name(class), resource(class))).collect())
    }

    fn extended_resource(&self, class: &str) -> Option<&str> {
        self.0.get(class)?.as_deref()
    }
}

/// A constraint for which resource claims count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::resourcequota) enum DeviceConstraint<'a> {
    /// All claims.
    Objects,
    /// The devices of a class.
    Devices(&'a str),
    /// The devices of a class, by its implicit extended resource.
    Implicit(&'a str),
    /// The devices of all classes of an extended resource.
    Extended(&'a str),
}

impl<'a> DeviceConstraint<'a> {
    pub(in crate::resourcequota) fn parse(constraint: &'a str, classes: &DeviceClasses, gates: Gates) -> Option<Self> {
        if constraint == "count/resourceclaims.resource.k8s.io" {
            return Some(Self::Objects);
        }
        if let Some(class) = constraint.strip_suffix(".deviceclass.resource.k8s.io/devices") {
            return Some(Self::Devices(class));
        }
        let resource = constraint.strip_prefix(REQUESTS).filter(|_| gates.dra_extended_resource)?;
        if let Some(class) = resource.strip_prefix(DEVICE_CLASS) {
            return classes.0.contains_key(class).then_some(Self::Implicit(class));
        }
        let is_of_a_class = || classes.0.values().flatten().any(|of_class| *of_class == *resource);
        (is_extended_resource(resource) && is_of_a_class()).then_some(Self::Extended(resource))
    }
}

/// Everything in a namespace that the usage of resource claims depends on.
pub(in crate::resourcequota) struct ClaimsContext<'a> {
    pub(in crate::resourcequota) claims: &'a [Arc<ResourceClaim>],
    /// The pods, sorted by name.
    pub(in crate::resourcequota) pods: &'a [CountedPod<'a>],
    pub(in crate::resourcequota) classes: &'a DeviceClasses,
    pub(in crate::resourcequota) gates: Gates,
    pub(in crate::resourcequota) now: Timestamp,
}

impl ClaimsContext<'_> {
    /// What all claims add to the usage of a constraint.
    pub(in crate::resourcequota) fn usage(&self, constraint: DeviceConstraint<'_>) -> ResourceQuantity {
        let mut sum = ResourceQuantity::default();
        for claim in self.claims {
            sum += self.usage_of(claim, constraint);
        }
        sum
    }

    fn usage_of(&self, claim: &ResourceClaim, constraint: DeviceConstraint<'_>) -> ResourceQuantity {
        let devices = |is_counted: &dyn Fn(&str) -> bool| {
            let counted = claim.devices.iter().filter(|(class, _)| is_counted(class)).map(|(_, devices)| *devices);
            ResourceQuantity::whole(counted.fold(0, i64::saturating_add))
        };
        match constraint {
            DeviceConstraint::Objects => ResourceQuantity::whole(1),
            DeviceConstraint::Devices(of) => devices(&|class| class == of),
            DeviceConstraint::Implicit(of) => {
                self.beyond_the_pod(claim, &format!("{DEVICE_CLASS}{of}"), devices(&|class| class == of))
            }
            DeviceConstraint::Extended(of) => {
                self.beyond_the_pod(claim, of, devices(&|class| self.classes.extended_resource(class) == Some(of)))
            }
        }
    }

    /// The devices that are not charged as requests of the pod for whose extended resources the claim was made.
    fn beyond_the_pod(&self, claim: &ResourceClaim, resource: &str, devices: ResourceQuantity) -> ResourceQuantity {
        let mut rest = devices;
        if let Some(pod) = self.pod_of(claim) {
            rest -= pod.usage(PodConstraint::Requests(resource), self.gates, self.now);
        }
        if rest.is_positive() { rest } else { ResourceQuantity::default() }
    }

    /// The pod for whose extended resources the claim was made: its controller, which names no other claim.
    ///
    /// A pod that names none yet belongs to the first claim that was made for it, so that no second one is free.
    fn pod_of(&self, claim: &ResourceClaim) -> Option<&CountedPod<'_>> {
        let (name, uid) = extended_claim_owner(claim)?;
        let at = self.pods.binary_search_by(|pod| pod.pod.metadata.key.name().cmp(name)).ok()?;
        let pod = &self.pods[at];
        if pod.pod.metadata.uid != *uid {
            return None;
        }
        let is_of_claim = match &pod.fields.extended_resource_claim {
            Some(named) => **named == *claim.metadata.key.name(),
            None => self.is_first_of(pod.pod, claim),
        };
        is_of_claim.then_some(pod)
    }

    fn is_first_of(&self, pod: &Pod, claim: &ResourceClaim) -> bool {
        let order = |claim: &ResourceClaim| (claim.metadata.creation_timestamp, claim.metadata.key.name().to_owned());
        let of_pod = self
            .claims
            .iter()
            .filter(|other| extended_claim_owner(other).is_some_and(|(_, uid)| *uid == pod.metadata.uid));
        of_pod.into_iter().all(|other| order(other) >= order(claim))
    }
}

/// Name and uid of the pod for whose extended resources a claim was made.
fn extended_claim_owner(claim: &ResourceClaim) -> Option<(&str, &kcm_framework::api::Uid)> {
    let is_extended = claim.metadata.annotations.get("resource.kubernetes.io/extended-resource-claim") == Some("true");
    let owner = claim.metadata.controller().filter(|_| is_extended)?;
    (owner.kind == "Pod" && owner.api_version == "v1").then_some((&*owner.name, &owner.uid))
}
