//! When a change has an autoscaler synced.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::View as _;
use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::informers::Change;
use serde_json::json;

use crate::horizontal_pod_autoscaler::event_mapping::keys_for_autoscaler;

const PERIOD: Duration = Duration::from_secs(15);

fn autoscaler(max: i32, current: i32) -> Arc<HorizontalPodAutoscaler> {
    let object = json!({
        "metadata": { "namespace": "shop", "name": "web" },
        "spec": { "maxReplicas": max }, "status": { "currentReplicas": current },
    });
    Arc::new(HorizontalPodAutoscaler::decode(&object.to_string()).expect("it is an autoscaler"))
}

#[test]
fn an_autoscaler_is_synced_after_a_period_or_at_once_with_the_gate() {
    let updated = |old, new| Change::Updated { old, new };
    for (name, change, without, with) in [
        ("added", Change::Added(autoscaler(5, 1)), PERIOD, Duration::ZERO),
        ("another spec", updated(autoscaler(5, 1), autoscaler(6, 1)), PERIOD, Duration::ZERO),
        ("another status", updated(autoscaler(5, 1), autoscaler(5, 2)), PERIOD, PERIOD),
        (
            "deleted",
            Change::Deleted { last: autoscaler(5, 1), final_state_known: true },
            Duration::ZERO,
            Duration::ZERO,
        ),
    ] {
        for (gate, expected) in [(false, without), (true, with)] {
            let found = keys_for_autoscaler(&change, PERIOD, gate);
            assert_eq!((found.after, found.key.to_string()), (expected, "shop/web".to_owned()), "{name}, gate {gate}");
        }
    }
}
