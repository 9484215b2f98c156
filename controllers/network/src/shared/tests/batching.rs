//! How long changes of pods wait.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use tokio::time::advance;

use crate::shared::batching::Batching;

const MILLISECOND: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_the_period_and_for_the_rest_of_the_spacing() {
    for (name, period, endpoints, after, expected) in [
        ("a small service", 0, 49, 0, 0),
        ("a large one", 0, 50, 0, 5),
        ("twice as large", 0, 100, 0, 10),
        ("some time after its reconcile", 0, 100, 4, 6),
        ("after the spacing", 0, 100, 10, 0),
        ("long after it", 0, 100, 1_000, 0),
        ("the longest", 0, 800, 0, 80),
        ("no longer than that", 0, 100_000, 0, 80),
        ("a longer period", 50, 100, 4, 50),
        ("a shorter period", 5, 100, 4, 6),
        ("a period, and a small service", 5, 1, 0, 5),
    ] {
        let web = ObjectKey::namespaced("shop", "web");
        let batching = Batching::new(period * MILLISECOND);
        assert_eq!(batching.enqueue(web.clone()).after, period * MILLISECOND, "{name}: before its first reconcile");
        batching.begins(&web, endpoints);
        advance(after * MILLISECOND).await;
        assert_eq!(batching.enqueue(web.clone()).after, expected * MILLISECOND, "{name}");
        let other = ObjectKey::namespaced("shop", "other");
        assert_eq!(batching.enqueue(other).after, period * MILLISECOND, "{name}: another service");
        batching.forget(&web);
        assert_eq!(batching.enqueue(web).after, period * MILLISECOND, "{name}: a new one of its name");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_has_become_small_does_not_wait() {
    let (web, batching) = (ObjectKey::namespaced("shop", "web"), Batching::new(Duration::ZERO));
    batching.begins(&web, 1_000);
    batching.begins(&web, 2);
    assert_eq!(batching.enqueue(web).after, Duration::ZERO);
}
