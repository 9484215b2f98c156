//! The rate at which Nodes are tainted.

use std::time::Duration;

use tokio::time::Instant;

use crate::node_lifecycle::limiter::Limiter;

#[test]
fn a_token_comes_at_the_rate_and_none_is_saved() {
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    let mut limiter = Limiter::new(0.1, start);
    let taken: Vec<bool> = [0, 0, 9, 10, 10, 60, 60].map(|seconds| limiter.take(at(seconds))).into();
    assert_eq!(taken, [true, false, false, true, false, true, false]);
}

#[test]
fn s40_a_changed_rate_counts_from_the_change_and_a_token_stays() {
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    let mut full = Limiter::new(0.1, start);
    full.set_rate(0.01, at(5));
    assert!(full.take(at(5)), "the token stays");
    let mut empty = Limiter::new(0.1, start);
    assert!(empty.take(start));
    empty.set_rate(0.01, at(5));
    assert!(!empty.take(at(104)) && empty.take(at(106)));
    empty.set_rate(0.01, at(110));
    assert!(empty.take(at(207)), "the same rate changes nothing");
}

#[test]
fn t18_a_rate_of_zero_gives_nothing_and_ends() {
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    for rate in [1.0, 0.1] {
        let mut limiter = Limiter::new(0.0, start);
        assert!(!limiter.take(at(1000)));
        limiter.set_rate(rate, at(1000));
        assert!(!limiter.take(at(1000)) && limiter.take(at(1011)), "{rate}");
        limiter.set_rate(0.0, at(1020));
        assert!(!limiter.take(at(2000)));
    }
}
