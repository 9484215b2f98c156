//! The limits of a rolling update, by the cases of upstream's `TestGetUnavailableNumbers`.

use serde_json::{Value, json};

use super::fixtures::daemon_set;
use crate::daemonset::rollout::Limits;

#[test]
fn counts_and_percentages_limit_an_update() {
    // maxSurge, maxUnavailable, nodes, expected: surge, unavailable
    for (surge, unavailable, desired, expected) in [
        (json!(0), json!(0), 0, (0, 0)),
        (json!(0), json!(1), 2, (0, 1)),
        (json!(0), json!("50%"), 2, (0, 1)),
        (json!(0), json!("50%"), 3, (0, 2)),
        (json!(0), json!("10%"), 5, (0, 1)),
        (json!("25%"), json!(0), 5, (2, 0)),
        (json!(1), json!(0), 5, (1, 0)),
        (json!("100%"), json!(0), 2, (2, 0)),
        (json!(0), json!("100%"), 3, (0, 3)),
        (json!(0), json!(0), 2, (0, 1)),
        (json!("50%"), json!(0), 0, (0, 0)),
        (Value::Null, Value::Null, 2, (0, 1)),
        (json!(0), json!(5), 2, (0, 5)),
    ] {
        let set = daemon_set("agent").rolling(surge.clone(), unavailable.clone()).build();
        let limits = Limits::of(&set, desired).expect("the strategy must be valid");
        assert_eq!((limits.max_surge, limits.max_unavailable), expected, "{surge} {unavailable} of {desired}");
    }
}

#[test]
fn surge_is_a_property_of_the_strategy_also_without_nodes() {
    for (surge, allows) in [(json!("1%"), true), (json!(1), true), (json!(0), false), (json!("0%"), false)] {
        let set = daemon_set("agent").rolling(surge.clone(), json!(0)).build();
        assert_eq!(Limits::of(&set, 0).expect("the strategy must be valid").allows_surge, allows, "{surge}");
    }
}

#[test]
fn a_string_that_is_no_percentage_is_an_error() {
    assert!(Limits::of(&daemon_set("agent").rolling(json!(0), json!("many")).build(), 2).is_err());
}

#[test]
fn on_delete_replaces_nothing() {
    let limits = Limits::of(&daemon_set("agent").on_delete().build(), 2).expect("the strategy must be valid");
    assert_eq!((limits.rolls, limits.allows_surge), (false, false));
}

#[test]
fn limits_that_cannot_be_read_leave_the_surge_that_can() {
    for (surge, unavailable, allows) in
        [(json!(1), json!("many"), true), (json!("many"), json!(0), false), (Value::Null, json!("many"), false)]
    {
        let set = daemon_set("agent").rolling(surge.clone(), unavailable).build();
        let limits = Limits::unreadable(&set);
        assert_eq!((limits.rolls, limits.allows_surge), (false, allows), "{surge}");
    }
}
