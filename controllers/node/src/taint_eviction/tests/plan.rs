//! Evictions of a Pod by taints, and their times.

use std::time::Duration;

use kcm_framework::api::scheduling::{ComparisonOperators, Taint, Toleration};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::taint_eviction::plan::{Pending, Plan, StayReason, Times, WaitReason, plan};

const OWN: &str = "node.kubernetes.io/unreachable";
const OTHER_OWN: &str = "node.kubernetes.io/not-ready";

fn taints(keys: &[&str]) -> Vec<Taint> {
    let taint = |key: &&str| {
        let (key, value) = key.split_once('=').unwrap_or((key, ""));
        serde_json::from_value(json!({ "key": key, "value": value, "effect": "NoExecute" })).unwrap()
    };
    keys.iter().map(taint).collect()
}

fn tolerations(list: Value) -> Vec<Toleration> {
    serde_json::from_value(list).unwrap()
}

/// A toleration of a key with any value.
fn exists(key: &str, seconds: impl Into<Option<i64>>) -> Value {
    json!({ "key": key, "operator": "Exists", "tolerationSeconds": seconds.into() })
}

/// Outcome of a plan, in seconds of a clock that began at zero.
#[derive(Debug, PartialEq)]
enum Outcome {
    Stays(StayReason),
    Waits(u64),
    Grace(u64),
    Evicted,
}

struct Case {
    taints: Vec<Taint>,
    tolerations: Vec<Toleration>,
    /// Start, elapsed time and due time of a pending eviction.
    pending: Option<(u64, u64, u64)>,
    now: u64,
    trusted_from: u64,
    comparison: ComparisonOperators,
}

impl Case {
    fn new(keys: &[&str], list: Value) -> Self {
        let comparison = ComparisonOperators::Disabled;
        let (taints, tolerations) = (taints(keys), tolerations(list));
        Self { taints, tolerations, pending: None, now: 100, trusted_from: 0, comparison }
    }

    fn pending(self, start: u64, elapsed: u64, due: u64) -> Self {
        Self { pending: Some((start, elapsed, due)), ..self }
    }

    fn trusted_from(self, trusted_from: u64) -> Self {
        Self { trusted_from, ..self }
    }
}

fn check(case: &Case) -> Outcome {
    let zero = Instant::now();
    let at = |seconds: u64| zero + Duration::from_secs(seconds);
    let pending = case.pending.map(|(start, elapsed, due)| Pending {
        start: at(start),
        elapsed: Duration::from_secs(elapsed),
        due: at(due),
    });
    let times = Times { now: at(case.now), trusted_from: at(case.trusted_from) };
    match plan(&case.taints, &case.tolerations, case.comparison, pending, times) {
        Plan::Stay(reason) => Outcome::Stays(reason),
        Plan::Wait(pending, WaitReason::Tolerated) => Outcome::Waits(pending.due.duration_since(zero).as_secs()),
        Plan::Wait(pending, WaitReason::RecentlyStarted) => Outcome::Grace(pending.due.duration_since(zero).as_secs()),
        Plan::Evict(_) => Outcome::Evicted,
    }
}

#[test]
fn s45_to_s47_a_pod_is_evicted_when_a_taint_is_not_tolerated_any_longer() {
    use Outcome::{Evicted, Stays, Waits};
    let forever = || Stays(StayReason::ToleratedForEver);
    for (name, case, expected) in [
        ("t28 no taints", Case::new(&[], json!([exists("a", 5)])), Stays(StayReason::NoTaint)),
        ("no tolerations", Case::new(&["a"], json!([])), Evicted),
        ("tolerated for ever", Case::new(&["a"], json!([exists("a", None)])), forever()),
        ("tolerated for a time", Case::new(&["a"], json!([exists("a", 60)])), Waits(160)),
        ("tolerated for no time", Case::new(&["a"], json!([exists("a", 0)])), Evicted),
        ("tolerated for less than no time", Case::new(&["a"], json!([exists("a", -5)])), Evicted),
        ("one of two taints", Case::new(&["a", "b"], json!([exists("a", 60)])), Evicted),
        ("the shortest of two", Case::new(&["a", "b"], json!([exists("a", 60), exists("b", 30)])), Waits(130)),
        (
            "one for ever, one for a time",
            Case::new(&["a", "b"], json!([exists("a", None), exists("b", 30)])),
            Waits(130),
        ),
        (
            "t31 the first match and not the best: everything for 300 s first",
            Case::new(&[OTHER_OWN], json!([exists("", 300), exists(OTHER_OWN, None)])),
            Waits(400),
        ),
        (
            "t31 the reverse order never evicts",
            Case::new(&[OTHER_OWN], json!([exists(OTHER_OWN, None), exists("", 300)])),
            forever(),
        ),
        ("another value", Case::new(&["a=x"], json!([{ "key": "a", "value": "y" }])), Evicted),
        ("the value", Case::new(&["a=x"], json!([{ "key": "a", "value": "x" }])), forever()),
        ("a time beyond the clock", Case::new(&["a"], json!([exists("a", i64::MAX)])), forever()),
    ] {
        assert_eq!(check(&case), expected, "{name}");
    }
}

#[test]
fn s45_comparisons_need_their_gate() {
    let greater = || json!([{ "key": "sla", "operator": "Gt", "value": "900" }]);
    let off = Case::new(&["sla=950"], greater());
    assert_eq!(check(&off), Outcome::Evicted);
    let on = Case { comparison: ComparisonOperators::Enabled, ..Case::new(&["sla=950"], greater()) };
    assert_eq!(check(&on), Outcome::Stays(StayReason::ToleratedForEver));
}

#[test]
fn a_pending_eviction_moves_to_later_times_only() {
    use Outcome::{Evicted, Stays, Waits};
    let pending = |keys: &[&str], list: Value| Case::new(keys, list).pending(70, 0, 130);
    for (name, case, expected) in [
        ("s47 nothing changed", pending(&["a"], json!([exists("a", 60)])), Waits(130)),
        ("o2 a shorter toleration is ignored, as upstream", pending(&["a"], json!([exists("a", 5)])), Waits(130)),
        (
            "o2 a further taint with less tolerance is ignored, as upstream",
            pending(&["a", "b"], json!([exists("a", 60), exists("b", 5)])),
            Waits(130),
        ),
        ("a longer toleration counts from its start", pending(&["a"], json!([exists("a", 90)])), Waits(160)),
        ("tolerated for ever now", pending(&["a"], json!([exists("a", None)])), Stays(StayReason::ToleratedForEver)),
        ("the taint is removed", pending(&[], json!([exists("a", 60)])), Stays(StayReason::NoTaint)),
        ("a taint that is not tolerated", pending(&["a", "b"], json!([exists("a", 60)])), Evicted),
        (
            "the worked example: the taint with the shortest time is removed",
            Case { now: 20, ..Case::new(&["b"], json!([exists("a", 30), exists("b", 300)])).pending(10, 0, 40) },
            Waits(310),
        ),
        ("t30 a swap between the two taints of health", pending(&[OTHER_OWN], json!([exists("", 60)])), Waits(130)),
        ("it is due", Case { now: 130, ..pending(&["a"], json!([exists("a", 60)])) }, Evicted),
        ("it was due, and failed", Case { now: 500, ..pending(&["a"], json!([exists("a", 60)])) }, Evicted),
    ] {
        assert_eq!(check(&case), expected, "{name}");
    }
}

#[test]
fn b12_after_a_restart_the_time_of_a_taint_of_health_goes_on_and_others_begin() {
    use Outcome::Waits;
    for (name, case, expected) in [
        ("200 of 300 s are over", Case::new(&[OWN], json!([exists("", 300)])).pending(100, 200, 100), Waits(200)),
        ("a taint of a user", Case::new(&["a"], json!([exists("", 300)])).pending(100, 200, 100), Waits(400)),
        (
            "one of each",
            Case::new(&["a", OWN], json!([exists("a", 50), exists("", 300)])).pending(100, 200, 100),
            Waits(150),
        ),
        ("all of it is over", Case::new(&[OWN], json!([exists("", 300)])).pending(100, 400, 100), Outcome::Evicted),
    ] {
        assert_eq!(check(&case), expected, "{name}");
    }
}

#[test]
fn b13_taints_of_health_evict_nothing_until_nodes_have_been_watched_for_long_enough() {
    use Outcome::{Evicted, Grace, Waits};
    for (name, case, expected) in [
        ("not tolerated", Case::new(&[OWN], json!([])).trusted_from(150), Grace(150)),
        ("overdue", Case::new(&[OWN], json!([exists("", 300)])).pending(90, 400, 90).trusted_from(150), Grace(150)),
        ("due later", Case::new(&[OWN], json!([exists("", 300)])).trusted_from(150), Waits(400)),
        ("a taint of a user", Case::new(&["a"], json!([])).trusted_from(150), Evicted),
        ("a taint of a user beside it", Case::new(&["a", OWN], json!([exists("a", 20)])).trusted_from(150), Waits(120)),
        ("not tolerated, and long watched", Case::new(&[OWN], json!([])).trusted_from(100), Evicted),
        (
            "an outage defers what is pending",
            Case { now: 131, ..Case::new(&[OWN], json!([exists("", 60)])).pending(70, 0, 130).trusted_from(180) },
            Grace(180),
        ),
    ] {
        assert_eq!(check(&case), expected, "{name}");
    }
}

#[test]
fn a_plan_in_words_has_its_time() {
    let now = Instant::now();
    let pending = Pending { start: now, elapsed: Duration::ZERO, due: now + Duration::from_mins(1) };
    for (plan, words) in [
        (Plan::Stay(StayReason::NoTaint), "keeps the pod, whose node has no taint that evicts"),
        (Plan::Stay(StayReason::ToleratedForEver), "keeps the pod, which tolerates the taints of its node for ever"),
        (
            Plan::Wait(pending, WaitReason::Tolerated),
            "keeps the pod for 60 s, for which it tolerates the taints of its node",
        ),
        (
            Plan::Wait(pending, WaitReason::RecentlyStarted),
            "keeps the pod for 60 s, as nodes have not been watched for long enough to trust their taints",
        ),
        (Plan::Evict(pending), "evicts the pod, which does not tolerate the taints of its node any longer"),
    ] {
        assert_eq!(plan.explain(now), words);
    }
}
