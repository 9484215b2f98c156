//! A round of deletion in words.

use std::time::Duration;

use super::{CONFIG_MAPS, DEPLOYMENTS, listing};
use crate::namespace::content::{ResourceResult, Round};
use crate::namespace::observe::PODS;

const HELD: &[&str] = &["example.com/hold"];

#[test]
fn a_round_names_what_is_in_the_way_and_what_follows() {
    let none = Duration::ZERO;
    let failure = "Discovery failed for some groups, 1 failing: x/v1: 503 (API service v1.x)";
    for (name, discovery_failure, results, expected) in [
        (
            "an empty namespace",
            None,
            vec![ResourceResult::gone(PODS)],
            "removes the finalizer, as the namespace is empty",
        ),
        (
            "pods that stop",
            None,
            vec![ResourceResult::after(PODS, &listing(&[("a-", &[]), ("b-", &[])]), Duration::from_secs(30))],
            "looks again in 16 s, as these remain: 2 pods",
        ),
        (
            "finalizers",
            None,
            vec![ResourceResult::after(CONFIG_MAPS, &listing(&[("a-", HELD), ("b-", &["x/y", HELD[0]])]), none)],
            "looks again in 8 s, as these remain: 2 configmaps (finalizers: example.com/hold on 2, x/y on 1)",
        ),
        (
            "an API service that does not answer",
            Some(failure),
            vec![ResourceResult::gone(PODS)],
            "tries again, as something is in the way: Discovery failed for some groups, 1 failing: x/v1: 503 (API service \
             v1.x)",
        ),
        (
            "objects that nothing holds up",
            None,
            vec![ResourceResult::after(DEPLOYMENTS, &listing(&[("a-", &[])]), none)],
            "tries again, as something is in the way: unexpected items still remain in namespace: shop for gvr: apps/v1, \
             Resource=deployments; these remain: 1 deployments.apps",
        ),
    ] {
        let round = Round { discovery_failure: discovery_failure.map(str::to_owned), results };
        assert_eq!(round.explain("shop"), expected, "{name}");
    }
}
