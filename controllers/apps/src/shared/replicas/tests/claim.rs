//! Adoption and release.

use kcm_framework::api::Selector;
use serde_json::json;

use super::fixtures::{build, names, observed, pod, replica_set};
use crate::shared::replicas::claim::plan_claims;

#[test]
fn only_active_pods_are_claimed_and_terminating_ones_of_its_own_are_counted() {
    let pods = [
        pod("kept"),
        pod("z-orphan").orphan(),
        pod("a-orphan").orphan(),
        pod("z-released").labels(json!({})),
        pod("a-released").labels(json!({})),
        pod("failed").phase("Failed"),
        pod("succeeded").phase("Succeeded"),
        pod("failed-orphan").phase("Failed").orphan(),
        pod("failed-relabelled").phase("Failed").labels(json!({})),
        pod("terminating").terminating(),
        pod("terminating-relabelled").terminating().labels(json!({})),
        pod("terminating-orphan").terminating().orphan(),
        pod("terminating-foreign").terminating().owned_by("twin"),
        pod("failed-terminating").terminating().phase("Failed"),
    ];
    let observed = observed(&replica_set("web"), &pods);
    let selector = observed.owner.selector.as_ref().unwrap();
    let claims = plan_claims(&observed, selector);
    assert_eq!(names(&claims.active.kept), ["kept"]);
    assert_eq!(names(&claims.active.adopt), ["a-orphan", "z-orphan"], "in the order of names");
    assert_eq!(names(&claims.active.release), ["a-released", "z-released"], "in the order of names");
    assert_eq!(claims.terminating, 1);
}

#[test]
fn a_terminating_owner_keeps_its_own_pods_and_claims_no_orphan() {
    let pods = [pod("kept"), pod("orphan").orphan(), pod("going").terminating(), pod("relabelled").labels(json!({}))];
    let observed = observed(&replica_set("web").terminating(), &pods);
    let claims = plan_claims(&observed, observed.owner.selector.as_ref().unwrap());
    assert_eq!(names(&claims.active.kept), ["kept"]);
    assert!(claims.active.adopt.is_empty() && claims.active.release.is_empty(), "{claims:?}");
    assert_eq!(claims.terminating, 1);
}

#[test]
fn an_absent_selector_releases_everything() {
    let observed = observed(&replica_set("web"), &[pod("a"), pod("b").orphan()]);
    let claims = plan_claims(&observed, &Selector::nothing());
    assert_eq!(claims.active.release, build(&[pod("a")]));
    assert!(claims.active.kept.is_empty() && claims.active.adopt.is_empty());
}
