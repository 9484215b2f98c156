//! The metrics of this controller.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use kcm_framework::api::OwnerReference;
use kcm_framework::api::views::ResourceClaim;
use kcm_framework::informers::Informer;
use kcm_framework::metrics::{Counters, MetricError, Stability};

use super::new_claim::ENTRY_ANNOTATION;

/// The annotation of a claim that the scheduler created for the extended resources of a Pod.
const EXTENDED_ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

#[derive(Debug)]
pub(super) struct Metrics {
    creates: Counters<4>,
}

impl Metrics {
    /// Registers the metrics. The claims are counted at each scrape, as long as `claims` is held elsewhere.
    pub(super) fn register(
        metrics: &kcm_framework::Metrics,
        claims: &Arc<Informer<ResourceClaim>>,
    ) -> Result<Self, MetricError> {
        let claims: Weak<Informer<ResourceClaim>> = Arc::downgrade(claims);
        metrics.gauges_at_scrape(
            Stability::Alpha,
            "dynamic_resource_allocation_resource_claims",
            ["allocated", "admin_access", "source"],
            "ResourceClaims by allocation, admin access, and source: a template, extended resources, or a user",
            move || {
                let mut counts: BTreeMap<[&'static str; 3], i64> = BTreeMap::new();
                if let Some(claims) = claims.upgrade() {
                    claims.for_each(|claim| *counts.entry(labels(claim)).or_default() += 1);
                }
                counts.into_iter().map(|(labels, count)| (labels.map(Into::into), count)).collect()
            },
        )?;
        Ok(Self {
            creates: metrics.counters(
                Stability::Alpha,
                "dynamic_resource_allocation_resourceclaim_creates_total",
                ["status", "admin_access", "owner_api_group", "owner_api_kind"],
                "Requests to create a ResourceClaim from a template, by result, admin access and kind of the owner",
            )?,
        })
    }

    pub(super) fn created(&self, is_success: bool, has_admin_access: bool, owner: &OwnerReference) {
        let status = if is_success { "success" } else { "failure" };
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let labels = [status, truth(has_admin_access), group, &*owner.kind].map(str::to_owned);
        self.creates.of(labels).inc();
    }
}

const fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// The values of the labels `allocated`, `admin_access` and `source` of a claim.
pub(super) fn labels(claim: &ResourceClaim) -> [&'static str; 3] {
    let annotations = &claim.metadata.annotations;
    let source = if annotations.get(EXTENDED_ANNOTATION) == Some("true") {
        "extended_resource"
    } else if annotations.get(ENTRY_ANNOTATION).is_some_and(|entry| !entry.is_empty()) {
        "resource_claim_template"
    } else {
        ""
    };
    [truth(claim.is_allocated), truth(claim.has_admin_access), source]
}
