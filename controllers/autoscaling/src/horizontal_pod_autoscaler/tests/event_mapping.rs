//! When a change has an autoscaler synced.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::View as _;
use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::informers::Change;
use serde_json::json;

use crate::horizontal_pod_autoscaler::event_mapping::keys_for_autoscaler;

const PERIOD: Duration = Duration::from_secs(15);

fn autoscaler(generation: i64, max: i32, current: i32) -> Arc<HorizontalPodAutoscaler> {
    let object = json!({
        "metadata": { "namespace": "shop", "name": "web", "generation": generation },
        "spec": { "maxReplicas": max }, "status": { "currentReplicas": current },
    });
    Arc::new(HorizontalPodAutoscaler::decode(&object.to_string()).expect("it is an autoscaler"))
}

#[test]
fn a_new_autoscaler_is_synced_at_once_and_a_new_spec_by_its_generation() {
    let updated = |old, new| Change::Updated { old, new };
    let deleted = Change::Deleted { last: autoscaler(1, 5, 1), final_state_known: true };
    for (name, change, without, with) in [
        ("added", Change::Added(autoscaler(1, 5, 1)), Duration::ZERO, Duration::ZERO),
        ("another generation", updated(autoscaler(1, 5, 1), autoscaler(2, 6, 1)), PERIOD, Duration::ZERO),
        ("another status", updated(autoscaler(1, 5, 1), autoscaler(1, 5, 2)), PERIOD, PERIOD),
        ("the first generation", updated(autoscaler(0, 5, 1), autoscaler(1, 5, 1)), PERIOD, Duration::ZERO),
        ("another spec without generations", updated(autoscaler(0, 5, 1), autoscaler(0, 6, 1)), PERIOD, Duration::ZERO),
        ("another status without generations", updated(autoscaler(0, 5, 1), autoscaler(0, 5, 2)), PERIOD, PERIOD),
        ("deleted", deleted, Duration::ZERO, Duration::ZERO),
    ] {
        for (gate, expected) in [(false, without), (true, with)] {
            let found = keys_for_autoscaler(&change, PERIOD, gate);
            assert_eq!((found.after, found.key.to_string()), (expected, "shop/web".to_owned()), "{name}, gate {gate}");
        }
    }
}
