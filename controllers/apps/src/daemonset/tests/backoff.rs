//! The back-off of failed pods.

use jiff::{SignedDuration, Timestamp};

use super::fixtures::now;
use crate::daemonset::backoff::{FailedPodBackoff, FailureKey};

fn on(node: &str) -> FailureKey {
    FailureKey { set: "uid".into(), observed_generation: 1, node: node.into() }
}

fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

#[test]
fn delays_double_from_a_second_to_fifteen_minutes() {
    let mut backoff = FailedPodBackoff::default();
    let mut at = now();
    assert_eq!(backoff.blocked_until(&on("n1"), at), None, "the first failure");
    for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
        backoff.deleted(on("n1"), at);
        let until = backoff.blocked_until(&on("n1"), at).expect("it waits");
        assert_eq!(until.duration_since(at), SignedDuration::from_secs(expected));
        at = until;
        assert_eq!(backoff.blocked_until(&on("n1"), at), None, "after {expected} s");
    }
}

#[test]
fn nodes_sets_and_generations_wait_on_their_own() {
    let mut backoff = FailedPodBackoff::default();
    backoff.deleted(on("n1"), now());
    for other in
        [on("n2"), FailureKey { set: "another".into(), ..on("n1") }, FailureKey { observed_generation: 2, ..on("n1") }]
    {
        assert_eq!(backoff.blocked_until(&other, now()), None, "{other:?}");
    }
}

#[test]
fn a_failure_half_an_hour_after_the_last_one_is_the_first_and_old_entries_are_removed() {
    let mut backoff = FailedPodBackoff::default();
    for seconds in 0..3 {
        backoff.deleted(on("n1"), after(seconds));
    }
    backoff.deleted(on("n2"), after(2));
    let later = after(2 + 30 * 60 + 1);
    assert_eq!(backoff.blocked_until(&on("n1"), later), None);
    backoff.deleted(on("n1"), later);
    assert_eq!(backoff.blocked_until(&on("n1"), later), Some(later + SignedDuration::from_secs(1)));
    assert_eq!(backoff.len(), 1);
}
