//! How long changes of pods wait.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use tokio::time::advance;

use crate::shared::batching::{Batching, Urgency};

const MILLISECOND: Duration = Duration::from_millis(1);

fn delay(batching: &Batching, service: &str) -> Duration {
    batching.enqueue(ObjectKey::namespaced("shop", service), Urgency::Urgent).after
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_period_and_for_the_rest_of_the_spacing() {
    for (name, period, endpoints, after, expected) in [
        ("a small service", 0, 1, 0, 10),
        ("a large one", 0, 200, 0, 20),
        ("some time after its reconcile", 0, 200, 4, 16),
        ("after the spacing", 0, 200, 20, 0),
        ("long after it", 0, 200, 1_000, 0),
        ("the longest", 0, 800, 0, 80),
        ("no longer than that", 0, 100_000, 0, 80),
        ("a longer period", 50, 200, 4, 50),
        ("a shorter period", 5, 200, 4, 16),
    ] {
        let web = ObjectKey::namespaced("shop", "web");
        let batching = Batching::new(period * MILLISECOND);
        assert_eq!(delay(&batching, "web"), period * MILLISECOND, "{name}: before its first reconcile");
        batching.begins(&web, endpoints);
        advance(after * MILLISECOND).await;
        assert_eq!(delay(&batching, "web"), expected * MILLISECOND, "{name}");
        assert_eq!(delay(&batching, "other"), period * MILLISECOND, "{name}: another service");
        batching.forget(&web);
        assert_eq!(delay(&batching, "web"), period * MILLISECOND, "{name}: a new one of its name");
    }
}

#[tokio::test(start_paused = true)]
async fn the_spacing_doubles_while_changes_continue_and_is_forgotten_after_a_rest() {
    for (name, endpoints, expected) in [("small", 3, [10, 20, 40, 80, 80]), ("large", 300, [30, 60, 80, 80, 80])] {
        let (web, batching) = (ObjectKey::namespaced("shop", "web"), Batching::new(Duration::ZERO));
        let mut spacings = Vec::new();
        for _ in expected {
            batching.begins(&web, endpoints);
            let spacing = delay(&batching, "web");
            spacings.push(spacing);
            advance(spacing).await;
        }
        assert_eq!(spacings, expected.map(|spacing| spacing * MILLISECOND), "{name}");
        // 160 ms after the last reconcile.
        advance(81 * MILLISECOND).await;
        batching.begins(&web, endpoints);
        assert_eq!(delay(&batching, "web"), expected[0] * MILLISECOND, "{name}: after a rest");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_no_traffic_depends_on_waits_half_a_second_to_a_second() {
    let batching = Batching::new(Duration::ZERO);
    let lazy =
        |number: usize| batching.enqueue(ObjectKey::namespaced("shop", format!("web-{number}")), Urgency::Lazy).after;
    let mut delays: Vec<Duration> = (0..1_000).map(lazy).collect();
    assert!(delays.iter().all(|delay| (500 * MILLISECOND..1_000 * MILLISECOND).contains(delay)), "{delays:?}");
    assert_eq!(lazy(7), delays[7], "the same each time, so that the first of several counts");
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 300, "services are spread: {}", delays.len());
    let slow = Batching::new(Duration::from_secs(5));
    assert_eq!(slow.enqueue(ObjectKey::namespaced("shop", "web"), Urgency::Lazy).after, Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn spacings_that_are_over_take_no_memory() {
    let batching = Batching::new(Duration::ZERO);
    for number in 0..10_000 {
        batching.begins(&ObjectKey::namespaced("shop", format!("web-{number}")), 3);
        advance(MILLISECOND).await;
    }
    let kept = batching.spacings.lock().by_service.len();
    assert!(kept <= 300, "{kept} are kept");
}
