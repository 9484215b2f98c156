mod apply;
mod event_mapping;
mod invariants;
mod plan;
mod simulation;
mod status;

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodDisruption, PodTolerations};
use kcm_framework::api::{DecodeContext, Need, Needs, View as _};
use serde_json::Value;

fn needs() -> Needs {
    [Need::part::<PodTolerations>(), Need::part::<PodDisruption>()].into_iter().collect()
}

/// Decodes a Pod with the parts that the controller needs.
fn pod_view(pod: &Value) -> Arc<Pod> {
    let context = Arc::new(DecodeContext::new::<Pod>(Arc::default(), &needs()));
    Arc::new(context.scope(|| Pod::decode(&pod.to_string())).expect("the fixture must be a pod"))
}
