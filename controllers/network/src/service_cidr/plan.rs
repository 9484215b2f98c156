//! The plan for a service CIDR.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::ConditionStatus;
use kcm_framework::api::views::ServiceCidr;

use super::range::Range;

pub(super) const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

pub(super) const READY: &str = "Ready";

/// Time from a deletion until the finalizer is removed: every API server learns of the deletion in it, and allocates no
/// address after it.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// It is in use: it has the finalizer and the condition, or gets them.
    Use { adds_finalizer: bool, sets_condition: bool },
    /// Its deletion waits for addresses that no other service CIDR has.
    Blocked { sets_condition: bool },
    /// Its deletion waits for the grace period.
    Wait { until: Timestamp },
    /// It may be deleted.
    Release { removes_finalizer: bool },
}

/// A state of the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// It is being deleted, and has addresses.
    Terminating,
}

impl Readiness {
    /// Status, reason and message.
    pub(super) const fn fields(self) -> (ConditionStatus, &'static str, &'static str) {
        match self {
            Self::Ready => (ConditionStatus::True, "", "Kubernetes Service CIDR is ready"),
            Self::Terminating => (
                ConditionStatus::False,
                "Terminating",
                "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
            ),
        }
    }

    /// Whether the service CIDR has another condition.
    fn is_new_to(self, cidr: &ServiceCidr) -> bool {
        let (status, reason, message) = self.fields();
        let present = cidr.conditions.iter().find(|condition| &*condition.type_ == READY);
        present.is_none_or(|present| {
            present.status != status || &*present.reason != reason || &*present.message != message
        })
    }
}

/// Plans for a service CIDR. `all` are all of them, itself included, and `addresses` the allocated ones; only the plan for
/// a terminating one depends on them.
pub(super) fn plan(cidr: &ServiceCidr, all: &[Arc<ServiceCidr>], addresses: &[IpAddr], now: Timestamp) -> Plan {
    let has_finalizer = cidr.metadata.finalizers.iter().any(|name| &**name == FINALIZER);
    let Some(deleted_at) = cidr.metadata.deletion_timestamp else {
        return Plan::Use { adds_finalizer: !has_finalizer, sets_condition: Readiness::Ready.is_new_to(cidr) };
    };
    if !is_covered(cidr, all) && has_orphans(cidr, all, addresses) {
        return Plan::Blocked { sets_condition: Readiness::Terminating.is_new_to(cidr) };
    }
    let until = deleted_at.saturating_add(GRACE).expect("a duration without months adds to any time");
    if until > now { Plan::Wait { until } } else { Plan::Release { removes_finalizer: has_finalizer } }
}

/// The ranges of a service CIDR: one, or one of each family.
pub(super) fn ranges(cidr: &ServiceCidr) -> impl Iterator<Item = Range> + '_ {
    cidr.cidrs.iter().filter_map(|text| Range::parse(text))
}

/// Whether other service CIDRs contain each of its ranges.
fn is_covered(cidr: &ServiceCidr, all: &[Arc<ServiceCidr>]) -> bool {
    let others = || all.iter().filter(|other| other.metadata.key != cidr.metadata.key);
    ranges(cidr).all(|range| others().any(|other| ranges(other).any(|of_other| of_other.contains(range))))
}

/// Whether one of the addresses is in this service CIDR and in no other one.
fn has_orphans(cidr: &ServiceCidr, all: &[Arc<ServiceCidr>], addresses: &[IpAddr]) -> bool {
    let has = |cidr: &ServiceCidr, address: IpAddr| ranges(cidr).any(|range| range.has_address(address));
    let is_only_here = |address: &IpAddr| {
        has(cidr, *address) && !all.iter().any(|other| other.metadata.key != cidr.metadata.key && has(other, *address))
    };
    addresses.iter().any(is_only_here)
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(self) -> String {
        match self {
            Self::Use { adds_finalizer: false, sets_condition: false } => {
                "leaves the service CIDR, which is ready".to_owned()
            }
            Self::Use { .. } => "makes the service CIDR ready".to_owned(),
            Self::Blocked { .. } => "keeps the service CIDR, as no other one has all of its addresses".to_owned(),
            Self::Wait { until } => {
                format!("keeps the service CIDR until {until}, when every API server knows that it goes")
            }
            Self::Release { .. } => {
                "lets the service CIDR go, as none of its addresses is left or another one has them".to_owned()
            }
        }
    }
}
