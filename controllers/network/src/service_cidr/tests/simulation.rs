//! Service CIDRs in the simulation.

use std::time::Duration;

use kcm_simulation::rules::{Held, Story, check as check_rule, has_condition, holds, items, name, of, writes_of};
use kcm_simulation::{History, Scenario, check};
use kcm_testing::sandbox::Sandbox;
use serde_json::{Value, json};

use super::address_json;
use super::apply::{CIDRS, create, get, key, ready};
use crate::service_cidr::{DESCRIPTOR, IP_ADDRESSES};
use crate::tests::scenarios::scenario;

const LOOP: &str = "ipaddresses";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// Time for which a terminating range waits for addresses that are on their way.
const WAIT: Duration = Duration::from_secs(10);

fn is_protected(cidr: &Value) -> bool {
    items(cidr, "/metadata/finalizers").iter().any(|one| one == FINALIZER)
}

/// D18: the finalizer of the small range leaves ten seconds after its deletion, and only if it has no address that the
/// reconcile has seen, unless the large range is ready.
fn protects_addresses(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(before) = change.before.as_deref().filter(|_| change.key.name() == "small") else { return Ok(()) };
        if !is_protected(before) || change.after.as_deref().is_some_and(is_protected) {
            return Ok(());
        }
        let is_seen = |address: &Value| history.seen_by(at, &IP_ADDRESSES, &key(name(address))).is_some();
        let has_address =
            of(objects, &IP_ADDRESSES).any(|address| name(address).starts_with("10.100.0.") && is_seen(address));
        let is_covered = of(objects, &CIDRS).any(|cidr| name(cidr) == "large" && has_condition(cidr, "Ready"));
        holds(!has_address || is_covered, "D18", "a range is released that has addresses", at, change)?;
        let terminates = |one: &&kcm_simulation::Change| {
            one.key == change.key && one.after.as_deref().is_some_and(kcm_simulation::rules::is_terminating)
        };
        let since = history.changes[..at].iter().find(terminates).map_or(Duration::ZERO, |one| one.at);
        let has_waited = change.at + Duration::from_secs(1) >= since + WAIT;
        holds(has_waited || has_address, "D18", "a range is released at once", at, change)
    })
}

/// D18: only a protected range is ready.
fn ready_ranges_are_protected(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, _| {
        let becomes = |cidr: &Value| has_condition(cidr, "Ready");
        let is_new = change.after.as_deref().is_some_and(becomes) && !change.before.as_deref().is_some_and(becomes);
        let is_right = !is_new || change.after.as_deref().is_some_and(is_protected);
        holds(is_right, "D18", "a range is ready without protection", at, change)
    })
}

/// A range that is deleted while an address is in it. The address is deleted later.
fn deleted() -> Scenario {
    let remove = |sandbox: &Sandbox| drop(sandbox.delete_now(&IP_ADDRESSES, &key("10.100.0.7")));
    scenario("service_cidr deleted", DESCRIPTOR, &[], &[protects_addresses, ready_ranges_are_protected])
        .prepare(|sandbox| create(sandbox, "small", &["10.100.0.0/24"]))
        .then(is_ready_or_gone, |sandbox| {
            drop(sandbox.create(&IP_ADDRESSES, address_json("10.100.0.7")));
            drop(sandbox.delete(&CIDRS, &key("small")));
        })
        .then(|sandbox| get(sandbox, "small").is_none() || ready(sandbox, "small")[0] == "False", remove)
        .act("annotate", |sandbox| {
            let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
            drop(sandbox.patch(&CIDRS, &key("small"), &of_user));
        })
        .act("add-address", |sandbox| drop(sandbox.create(&IP_ADDRESSES, address_json("10.100.0.9"))))
        .act("remove-address", remove)
        .act("cover", |sandbox| {
            if get(sandbox, "large").is_none() {
                create(sandbox, "large", &["10.100.0.0/16"]);
            }
        })
        .goal(|sandbox| {
            let has_late = sandbox.get(&IP_ADDRESSES, &key("10.100.0.9")).is_some();
            let is_held = has_late && get(sandbox, "large").is_none() && ready(sandbox, "small")[0] == "False";
            let large = get(sandbox, "large").is_none() || ready(sandbox, "large")[0] == "True";
            large && (get(sandbox, "small").is_none() || is_held)
        })
}

fn is_ready_or_gone(sandbox: &Sandbox) -> bool {
    get(sandbox, "small").is_none() || ready(sandbox, "small")[0] == "True"
}

#[test]
fn no_perturbation_of_a_deletion_breaks_a_rule() {
    check(&deleted(), 15);
}

#[test]
fn a_range_is_released_after_its_addresses_and_ten_seconds() {
    let released = |address: &str, seconds: u64| {
        let cidr = json!({ "metadata": { "name": "small", "uid": "u", "finalizers": [FINALIZER] } });
        let terminate = |cidr: &mut Value| cidr["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
        Story::of([(CIDRS, cidr), (IP_ADDRESSES, json!({ "metadata": { "name": address, "uid": "v" } }))])
            .edit("user", &CIDRS, "small", terminate)
            .edit(LOOP, &CIDRS, "small", |cidr| cidr["metadata"]["finalizers"] = json!([]))
            .at(Duration::from_secs(seconds))
    };
    check_rule("D18", protects_addresses, released("10.200.0.1", 10), released("10.100.0.1", 10));
    check_rule("D18", protects_addresses, released("10.200.0.1", 10), released("10.200.0.1", 8));
    let made_ready = |finalizers: Value| {
        let cidr = json!({ "metadata": { "name": "small", "uid": "u", "finalizers": finalizers } });
        let conditions = json!([{ "type": "Ready", "status": "True" }]);
        Story::of([(CIDRS, cidr)]).edit(LOOP, &CIDRS, "small", |cidr| cidr["status"]["conditions"] = conditions)
    };
    check_rule("D18", ready_ranges_are_protected, made_ready(json!([FINALIZER])), made_ready(json!([])));
}
