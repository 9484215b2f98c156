//! Adoption and release.

use kcm_api::Selector;
use serde_json::json;

use super::fixtures::{PodBuilder, ReplicaSetBuilder, build, names, observed, pod, replica_set};
use crate::replicaset::claim::plan_claims;
use crate::shared::claim::{Claim, LeaveReason, claim};
use crate::shared::ownership::Owner;

struct Case {
    name: &'static str,
    owner: ReplicaSetBuilder,
    pod: PodBuilder,
    claim: Claim,
}

#[test]
fn each_pod_is_kept_adopted_released_or_left_for_a_reason() {
    let web = || replica_set("web");
    let other = json!({ "app": "other" });
    let merely_owned = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-of-web" }]);
    for Case { name, owner, pod, claim: expected } in [
        Case { name: "its own", owner: web(), pod: pod("a"), claim: Claim::Keep },
        Case {
            name: "its own while the owner is terminating",
            owner: web().terminating(),
            pod: pod("a"),
            claim: Claim::Keep,
        },
        Case { name: "its own, relabelled", owner: web(), pod: pod("a").labels(other.clone()), claim: Claim::Release },
        Case {
            name: "its own, relabelled, while the owner is terminating",
            owner: web().terminating(),
            pod: pod("a").labels(other.clone()),
            claim: Claim::Leave(LeaveReason::OwnerTerminating),
        },
        Case { name: "an orphan", owner: web(), pod: pod("a").orphan(), claim: Claim::Adopt },
        Case {
            name: "owned by it, but not controlled",
            owner: web(),
            pod: pod("a").with("/metadata", "ownerReferences", merely_owned),
            claim: Claim::Adopt,
        },
        Case {
            name: "an orphan that is not selected",
            owner: web(),
            pod: pod("a").orphan().labels(other.clone()),
            claim: Claim::Leave(LeaveReason::NotSelected),
        },
        Case {
            name: "an orphan while the owner is terminating",
            owner: web().terminating(),
            pod: pod("a").orphan(),
            claim: Claim::Leave(LeaveReason::OwnerTerminating),
        },
        Case {
            name: "a terminating orphan",
            owner: web(),
            pod: pod("a").orphan().terminating(),
            claim: Claim::Leave(LeaveReason::Terminating),
        },
        Case {
            name: "controlled by another owner, though selected",
            owner: web(),
            pod: pod("a").owned_by("twin"),
            claim: Claim::Leave(LeaveReason::ControlledByAnother),
        },
        Case {
            name: "of a replica set that was recreated under the same name",
            owner: web(),
            pod: pod("a").owner("ReplicaSet", "web", "uid-of-before"),
            claim: Claim::Leave(LeaveReason::ControlledByAnother),
        },
        Case {
            name: "of another kind with the same uid",
            owner: web(),
            pod: pod("a").owner("Job", "web", "uid-of-web"),
            claim: Claim::Leave(LeaveReason::ControlledByAnother),
        },
        Case {
            name: "of another name with the same uid",
            owner: web(),
            pod: pod("a").owner("ReplicaSet", "other", "uid-of-web"),
            claim: Claim::Leave(LeaveReason::ControlledByAnother),
        },
        Case {
            name: "of another namespace",
            owner: web(),
            pod: pod("a").namespace("elsewhere"),
            claim: Claim::Leave(LeaveReason::ControlledByAnother),
        },
        Case {
            name: "an orphan, of a selector that selects everything",
            owner: web().selector(json!({})),
            pod: pod("a").orphan().labels(other),
            claim: Claim::Adopt,
        },
    ] {
        let (owner, pod) = (owner.build(), pod.build());
        let selector = owner.selector.as_ref().unwrap();
        assert_eq!(claim(Owner::of(&*owner), selector, &pod.metadata), expected, "{name}");
    }
}

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
