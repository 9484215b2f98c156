//! What is planned for a service CIDR.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::SignedDuration;
use kcm_framework::api::views::ServiceCidr;
use serde_json::{Value, json};

use super::{ago, cidr, cidr_json, now, view_of};
use crate::service_cidr::plan::{Plan, plan};

fn deleted(ranges: &[&str], seconds_ago: i64) -> Value {
    let mut cidr = cidr_json("a", ranges);
    cidr["metadata"]["deletionTimestamp"] = json!(ago(seconds_ago));
    cidr
}

fn with_condition(mut cidr: Value, status: &str, reason: &str, message: &str) -> Value {
    let condition = json!({ "type": "Ready", "status": status, "reason": reason, "message": message });
    cidr["status"] = json!({ "conditions": [condition] });
    cidr
}

fn check(cidr: &Value, others: &[Arc<ServiceCidr>], addresses: &[&str]) -> Plan {
    let cidr = view_of(cidr);
    let all: Vec<_> = others.iter().cloned().chain([Arc::clone(&cidr)]).collect();
    let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    plan(&cidr, &all, &addresses, now())
}

const RELEASE: Plan = Plan::Release { removes_finalizer: true };
const BLOCKED: Plan = Plan::Blocked { sets_condition: true };

#[test]
fn what_is_in_use_has_the_finalizer_and_the_condition() {
    let ready = || with_condition(cidr_json("a", &["10.0.0.0/24"]), "True", "", "Kubernetes Service CIDR is ready");
    let mut bare = ready();
    bare["metadata"]["finalizers"] = json!(["example.com/other"]);
    let planned = |adds_finalizer, sets_condition| Plan::Use { adds_finalizer, sets_condition };
    for (name, cidr, expected) in [
        (
            "new",
            {
                let mut cidr = cidr_json("a", &["10.0.0.0/24"]);
                cidr["metadata"]["finalizers"] = json!([]);
                cidr
            },
            planned(true, true),
        ),
        ("without a condition", cidr_json("a", &["10.0.0.0/24"]), planned(false, true)),
        ("ready", ready(), planned(false, false)),
        ("without the finalizer", bare, planned(true, false)),
        ("not ready", with_condition(ready(), "False", "", "Kubernetes Service CIDR is ready"), planned(false, true)),
        ("another message", with_condition(ready(), "True", "", "x"), planned(false, true)),
        (
            "another reason",
            with_condition(ready(), "True", "x", "Kubernetes Service CIDR is ready"),
            planned(false, true),
        ),
    ] {
        assert_eq!(check(&cidr, &[], &[]), expected, "{name}");
    }
}

#[test]
fn a_deleted_one_goes_when_its_addresses_are_gone_or_in_others() {
    for (name, ranges, others, addresses, expected) in [
        ("no address", &["10.0.0.0/24"][..], vec![], &[][..], RELEASE),
        ("an address", &["10.0.0.0/24"], vec![], &["10.0.0.5"], BLOCKED),
        ("an address of another range", &["10.0.0.0/24"], vec![], &["10.0.1.5"], RELEASE),
        ("the network address", &["10.0.0.0/24"], vec![], &["10.0.0.0"], RELEASE),
        ("the broadcast address", &["10.0.0.0/24"], vec![], &["10.0.0.255"], RELEASE),
        ("the last address of IPv6", &["fd00::/112"], vec![], &["fd00::ffff"], BLOCKED),
        ("the same range", &["10.0.0.0/24"], vec![cidr("b", &["10.0.0.0/24"])], &["10.0.0.5"], RELEASE),
        ("a larger range", &["10.0.0.0/24"], vec![cidr("b", &["10.0.0.0/16"])], &["10.0.0.5"], RELEASE),
        (
            "a smaller range that has the address",
            &["10.0.0.0/16"],
            vec![cidr("b", &["10.0.0.0/24"])],
            &["10.0.0.5"],
            RELEASE,
        ),
        (
            "a smaller range that lacks an address",
            &["10.0.0.0/16"],
            vec![cidr("b", &["10.0.0.0/24"])],
            &["10.0.0.5", "10.0.9.5"],
            BLOCKED,
        ),
        (
            "a smaller range whose broadcast address it is",
            &["10.0.0.0/16"],
            vec![cidr("b", &["10.0.0.0/24"])],
            &["10.0.0.255"],
            BLOCKED,
        ),
        (
            "both families in one other",
            &["10.0.0.0/24", "fd00::/112"],
            vec![cidr("b", &["10.0.0.0/16", "fd00::/64"])],
            &["10.0.0.5", "fd00::5"],
            RELEASE,
        ),
        (
            "both families in two others",
            &["10.0.0.0/24", "fd00::/112"],
            vec![cidr("b", &["10.0.0.0/16"]), cidr("c", &["fd00::/64"])],
            &["10.0.0.5", "fd00::5"],
            RELEASE,
        ),
        (
            "one family of two in another",
            &["10.0.0.0/24", "fd00::/112"],
            vec![cidr("b", &["10.0.0.0/16"])],
            &["10.0.0.5", "fd00::5"],
            BLOCKED,
        ),
        (
            "one family of two, without an address of the other",
            &["10.0.0.0/24", "fd00::/112"],
            vec![cidr("b", &["10.0.0.0/16"])],
            &["10.0.0.5"],
            RELEASE,
        ),
        ("the same range of IPv6", &["fd00::/112"], vec![cidr("b", &["fd00::/112"])], &["fd00::5"], RELEASE),
        ("a larger range of IPv6", &["fd00::/112"], vec![cidr("b", &["fd00::/64"])], &["fd00::5"], RELEASE),
        ("an unrelated range", &["10.0.0.0/24"], vec![cidr("b", &["10.9.0.0/16"])], &["10.0.0.5"], BLOCKED),
        ("an unrelated range of IPv6", &["fd00::/112"], vec![cidr("b", &["fd01::/64"])], &["fd00::5"], BLOCKED),
        ("another family", &["10.0.0.0/24"], vec![cidr("b", &["::/0"])], &["10.0.0.5"], BLOCKED),
    ] {
        assert_eq!(check(&deleted(ranges, 60), &others, addresses), expected, "{name}");
    }
}

#[test]
fn a_deletion_waits_ten_seconds() {
    let wait = |seconds| Plan::Wait { until: now() + SignedDuration::from_secs(seconds) };
    for (name, seconds_ago, expected) in [
        ("just deleted", 0, wait(10)),
        ("before the end", 9, wait(1)),
        ("at the end", 10, RELEASE),
        ("by a clock that is ahead", -5, wait(15)),
    ] {
        assert_eq!(check(&deleted(&["10.0.0.0/24"], seconds_ago), &[], &[]), expected, "{name}");
    }
    assert_eq!(check(&deleted(&["10.0.0.0/24"], 0), &[], &["10.0.0.5"]), BLOCKED, "an address blocks it at once");
    let mut released = deleted(&["10.0.0.0/24"], 60);
    released["metadata"]["finalizers"] = json!(["example.com/other"]);
    assert_eq!(check(&released, &[], &[]), Plan::Release { removes_finalizer: false });
}

#[test]
fn the_condition_of_a_blocked_one_is_set_once() {
    let message =
        "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";
    let cidr = with_condition(deleted(&["10.0.0.0/24"], 60), "False", "Terminating", message);
    assert_eq!(check(&cidr, &[], &["10.0.0.5"]), Plan::Blocked { sets_condition: false });
    assert_eq!(BLOCKED.explain(), "keeps the service CIDR, as no other one has all of its addresses");
}
