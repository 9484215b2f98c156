//! The union of rules.

use serde_json::{Value, json};

use super::{aggregated, role, view};
use crate::clusterrole_aggregation::plan::{may_aggregate, plan_rules};

struct Case {
    name: &'static str,
    aggregated: Value,
    roles: Vec<Value>,
    /// The verbs of the rules; absent where nothing is written.
    expected: Option<&'static [&'static str]>,
}

fn check(case: &Case) {
    let aggregated = view(&case.aggregated);
    let mut roles: Vec<_> = case.roles.iter().map(view).chain([aggregated.clone()]).collect();
    roles.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    let union = plan_rules(&aggregated, &roles).expect("the selectors are valid");
    let verbs = union.map(|union| {
        let verbs = union.iter().map(|rule| json!(rule)["verbs"][0].as_str().unwrap_or_default().to_owned());
        verbs.collect::<Vec<_>>()
    });
    let expected = case.expected.map(|verbs| verbs.iter().map(|&verb| verb.to_owned()).collect());
    assert_eq!(verbs, expected, "{}", case.name);
}

#[test]
fn the_rules_are_those_of_the_selected_roles() {
    let (foo, bar) = (json!({ "foo": "bar" }), json!({ "baz": "quux" }));
    for case in [
        Case {
            name: "rules that no selected role has any more are removed",
            aggregated: aggregated("hammer", std::slice::from_ref(&foo), &["old"]),
            roles: vec![],
            expected: Some(&[]),
        },
        Case {
            name: "a role without the labels adds nothing",
            aggregated: aggregated("hammer", std::slice::from_ref(&foo), &[]),
            roles: vec![role("other", &bar, &["get"])],
            expected: None,
        },
        Case {
            name: "rules come by the names of their roles",
            aggregated: aggregated("hammer", std::slice::from_ref(&foo), &[]),
            roles: vec![role("zed", &foo, &["z"]), role("abe", &foo, &["b", "a"])],
            expected: Some(&["b", "a", "z"]),
        },
        Case {
            name: "selectors come before names",
            aggregated: aggregated("hammer", &[bar.clone(), foo.clone()], &[]),
            roles: vec![role("abe", &foo, &["a"]), role("zed", &bar, &["z"])],
            expected: Some(&["z", "a"]),
        },
        Case {
            name: "a rule comes once, where it comes first",
            aggregated: aggregated("hammer", &[foo.clone(), bar.clone()], &[]),
            roles: vec![role("abe", &foo, &["x", "y"]), role("zed", &bar, &["y", "w"])],
            expected: Some(&["x", "y", "w"]),
        },
        Case {
            name: "rules that are right are not written",
            aggregated: aggregated("hammer", std::slice::from_ref(&foo), &["a"]),
            roles: vec![role("abe", &foo, &["a"])],
            expected: None,
        },
        Case {
            name: "another order is another union",
            aggregated: aggregated("hammer", std::slice::from_ref(&foo), &["b", "a"]),
            roles: vec![role("abe", &foo, &["a", "b"])],
            expected: Some(&["a", "b"]),
        },
        Case {
            name: "the role itself adds nothing",
            aggregated: aggregated("hammer", &[json!({})], &["own"]),
            roles: vec![],
            expected: Some(&[]),
        },
        Case {
            name: "an empty selector selects every other role",
            aggregated: aggregated("hammer", &[json!({})], &[]),
            roles: vec![role("abe", &bar, &["a"])],
            expected: Some(&["a"]),
        },
        Case {
            name: "a role without an aggregation rule is left alone",
            aggregated: role("plain", &foo, &["a"]),
            roles: vec![role("abe", &foo, &["b"])],
            expected: None,
        },
    ] {
        check(&case);
    }
}

#[test]
fn an_absent_list_of_a_rule_is_an_empty_one() {
    let foo = json!({ "foo": "bar" });
    let (mut hammer, mut abe) = (aggregated("hammer", std::slice::from_ref(&foo), &["a"]), role("abe", &foo, &["a"]));
    hammer["rules"][0]["resourceNames"] = json!([]);
    abe["rules"][0]["nonResourceURLs"] = json!(null);
    check(&Case { name: "null and empty lists", aggregated: hammer, roles: vec![abe], expected: None });
}

#[test]
fn an_invalid_selector_is_an_error() {
    let mut hammer = aggregated("hammer", &[], &[]);
    let operator = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    hammer["aggregationRule"]["clusterRoleSelectors"] = json!([operator]);
    assert!(plan_rules(&view(&hammer), &[]).is_err());
}

#[test]
fn a_role_waits_for_those_that_it_may_select_and_that_cannot_be_decoded() {
    let foo = json!({ "foo": "bar" });
    let (hammer, plain) =
        (view(&aggregated("hammer", std::slice::from_ref(&foo), &[])), view(&role("plain", &foo, &[])));
    let (selected, other) = (view(&role("a", &foo, &[])), view(&role("b", &json!({}), &[])));
    assert!(may_aggregate(&hammer, Some(&selected.metadata)));
    assert!(may_aggregate(&hammer, None), "its labels are unknown");
    assert!(!may_aggregate(&hammer, Some(&other.metadata)));
    assert!(!may_aggregate(&plain, None));
}
