mod apply;
mod event_mapping;
mod names;
mod plan;
mod work;

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodClaims, ResourceClaim};
use kcm_framework::api::{Need, Needs};
use serde_json::Value;

use crate::tests::view;

fn needs() -> Needs {
    [Need::part::<PodClaims>()].into_iter().collect()
}

fn pod_view(pod: &Value) -> Arc<Pod> {
    view(pod, &needs())
}

fn claim_view(claim: &Value) -> Arc<ResourceClaim> {
    view(claim, &needs())
}
