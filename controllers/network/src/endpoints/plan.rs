//! The plan for the endpoints of a service.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::api::Labels;
use kcm_framework::api::views::Service;

use super::truncate::truncate;
use crate::shared::subsets::{Subset, repack};
use crate::shared::trigger_time::{TRIGGER_TIME, annotation_value};

/// The annotation of endpoints that lack addresses.
pub(super) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

const TRUNCATED: &str = "truncated";

/// The label of the endpoints of a headless service.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The label that names the controller of endpoints.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY`].
const NAME: &str = "endpoint-controller";

/// The endpoints that exist.
#[derive(Debug, Clone)]
pub(super) struct Existing<'a> {
    pub(super) labels: &'a Labels,
    /// The value of [`OVER_CAPACITY`].
    pub(super) over_capacity: Option<&'a str>,
    pub(super) subsets: Vec<Subset>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// They are up to date.
    Keep,
    Write(Desired),
}

/// The fields of endpoints that are written. Annotations of other clients are kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Desired {
    pub(super) labels: BTreeMap<String, String>,
    /// The annotations of this controller. An annotation without a value is removed.
    pub(super) annotations: [(&'static str, Option<String>); 2],
    pub(super) subsets: Vec<Subset>,
}

/// Plans the endpoints of a service whose pods have these subsets, packed and ordered.
///
/// Existing subsets in another order or layout are equal if they repack to the same subsets.
pub(super) fn plan(
    service: &Service,
    mut subsets: Vec<Subset>,
    existing: Option<Existing<'_>>,
    trigger: Option<Timestamp>,
) -> Plan {
    let is_truncated = truncate(&mut subsets);
    if let Some(existing) = existing
        && existing.over_capacity == is_truncated.then_some(TRUNCATED)
        && labels_match(existing.labels, &service.metadata.labels)
        && subsets_match(existing.subsets, &subsets)
    {
        return Plan::Keep;
    }
    let labels = service.metadata.labels.iter();
    let mut labels: BTreeMap<String, String> =
        labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if service.has_cluster_ip() {
        labels.remove(HEADLESS);
    } else {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), NAME.to_owned());
    let annotations =
        [(TRIGGER_TIME, trigger.map(annotation_value)), (OVER_CAPACITY, is_truncated.then(|| TRUNCATED.to_owned()))];
    Plan::Write(Desired { labels, annotations, subsets })
}

/// Whether subsets are equal after repacking, except for the versions of their pods.
fn subsets_match(mut existing: Vec<Subset>, desired: &[Subset]) -> bool {
    for subset in &mut existing {
        let addresses = subset.addresses.iter_mut().chain(&mut subset.not_ready_addresses);
        for target in addresses.filter_map(|address| address.target_ref.as_mut()) {
            target.resource_version.clear();
        }
    }
    existing == desired || repack(existing) == repack(desired.to_vec())
}

/// Whether endpoints have the labels of the service and [`MANAGED_BY`].
///
/// As upstream, [`HEADLESS`] is not compared.
fn labels_match(existing: &Labels, service: &Labels) -> bool {
    let copied = || existing.iter().filter(|(name, _)| ![HEADLESS, MANAGED_BY].contains(name));
    existing.get(MANAGED_BY) == Some(NAME)
        && copied().all(|(name, value)| service.get(name) == Some(value))
        && copied().count() == service.iter().count()
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        match self {
            Self::Keep => "leaves the endpoints as they are, as they are up to date".to_owned(),
            Self::Write(desired) => {
                let ready: usize = desired.subsets.iter().map(|subset| subset.addresses.len()).sum();
                let not_ready: usize = desired.subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
                let is_truncated =
                    desired.annotations.iter().any(|(name, value)| *name == OVER_CAPACITY && value.is_some());
                let truncated = if is_truncated { "; more than 1,000 are left out" } else { "" };
                format!(
                    "writes endpoints with {ready} addresses that are ready and {not_ready} that are not{truncated}"
                )
            }
        }
    }
}
