//! Label selectors: valid forms, selected objects and text.

use std::collections::BTreeMap;

use kcm_api::{InvalidSelector, LabelSelector, Labels, Selector};
use proptest::prelude::*;

fn query(text: &str) -> Selector {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn api(json: &str) -> Result<Selector, InvalidSelector> {
    Selector::try_from(&serde_json::from_str::<LabelSelector>(json).expect("the case must be JSON"))
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn an_empty_selector_selects_everything_and_an_absent_one_nothing() {
    for everything in
        [api("{}").unwrap(), api(r#"{"matchLabels":null,"matchExpressions":null}"#).unwrap(), query(""), query(" ")]
    {
        assert_eq!(everything, Selector::everything());
        assert!(everything.matches(&labels(&[])));
        assert!(everything.matches(&labels(&[("a", "b")])));
    }
    let nothing = Selector::try_from(None).unwrap();
    assert_eq!(nothing, Selector::nothing());
    assert!(!nothing.matches(&labels(&[])));
    assert!(!nothing.matches(&labels(&[("none", "")])));
}

#[test]
fn nothing_is_written_as_a_query_that_selects_nothing() {
    let query = query(&Selector::nothing().to_string());
    assert!(!query.matches(&labels(&[])));
    assert!(!query.matches(&labels(&[("none", "")])));
}

#[test]
fn operators_select_as_upstream() {
    let (without, empty, x, y) =
        (labels(&[("z", "x")]), labels(&[("a", "")]), labels(&[("a", "x"), ("b", "1")]), labels(&[("a", "y")]));
    for (text, expected) in [
        ("a=x", [false, false, true, false]),
        ("a==x", [false, false, true, false]),
        ("a=", [false, true, false, false]),
        ("a!=x", [true, true, false, true]),
        ("a in (x)", [false, false, true, false]),
        ("a in (x,y)", [false, false, true, true]),
        ("a in (,y)", [false, true, false, true]),
        ("a notin (x)", [true, true, false, true]),
        ("a notin (y,x)", [true, true, false, false]),
        ("a", [false, true, true, true]),
        ("!a", [true, false, false, false]),
        ("a=x,b=1", [false, false, true, false]),
        ("a=x,!b", [false, false, false, false]),
        ("b>0", [false, false, true, false]),
        ("b>1", [false, false, false, false]),
        ("b<2", [false, false, true, false]),
        ("a>0", [false, false, false, false]),
    ] {
        let selector = query(text);
        assert_eq!([&without, &empty, &x, &y].map(|labels| selector.matches(labels)), expected, "{text}");
    }
}

#[test]
fn queries_are_written_sorted() {
    for (text, written) in [
        ("a=b", "a=b"),
        (" c , a == b,!d , b!=x ", "a=b,b!=x,c,!d"),
        ("a in ( z ,y,y)", "a in (y,z)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (b,,)", "a in (,b)"),
        ("a notin (b)", "a notin (b)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin=in", "notin=in"),
        ("a=,b", "a=,b"),
        ("a=", "a="),
        ("x/y>5,x/y<07", "x/y>5,x/y<7"),
        ("a\tin\n(b)", "a in (b)"),
        ("a in(b)", "a in (b)"),
    ] {
        assert_eq!(query(text).to_string(), written, "{text:?}");
        assert_eq!(query(written), query(text), "{text:?}");
    }
}

#[test]
fn malformed_queries_are_refused() {
    for text in [
        ",",
        "a,",
        ",a",
        "a,,b",
        "a b",
        "=",
        "=a",
        "a=b=c",
        "a===b",
        "a=!b",
        "!a=b",
        "!",
        "!!a",
        "a!",
        "a!b",
        "a in",
        "a in b",
        "a in (b",
        "a in (b c)",
        "a in ((b))",
        "a in b)",
        "(a)",
        "a>",
        "a>x",
        "a<1.5",
        "a>(1)",
        "a=b c",
        "a in (b) c",
        "-a",
        "a=-",
        "é",
        "a=é",
        "a/b/c=d",
        "a\u{0}",
    ] {
        assert!(text.parse::<Selector>().is_err(), "{text:?}");
    }
    assert_eq!(
        "a in (b c)".parse::<Selector>().unwrap_err().to_string(),
        "label selector \"a in (b c)\" is malformed at byte 8: found \"c\", expected ',' or ')'"
    );
    assert_eq!(
        "a,".parse::<Selector>().unwrap_err().to_string(),
        "label selector \"a,\" is malformed at byte 2: found \"\", expected a key or '!'"
    );
}

#[test]
fn selectors_of_objects_are_read() {
    let json = r#"{"matchLabels":{"b":"1","a":""},"matchExpressions":[
        {"key":"c","operator":"In","values":["y","x","y"]},{"key":"d","operator":"NotIn","values":["z"]},
        {"key":"f","operator":"Exists","values":null},{"key":"e","operator":"DoesNotExist"}]}"#;
    assert_eq!(api(json).unwrap().to_string(), "a=,b=1,c in (x,y),d notin (z),!e,f");
}

#[test]
fn selectors_of_objects_are_checked() {
    for (json, message) in [
        (r#"{"matchLabels":{"-":"b"}}"#, r#"label selector has the invalid key "-""#),
        (r#"{"matchLabels":{"a":"b c"}}"#, r#"label selector has the invalid value "b c" for key "a""#),
        (r#"{"matchExpressions":[{}]}"#, r#""" is not a valid label selector operator"#),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"in","values":["b"]}]}"#,
            r#""in" is not a valid label selector operator"#,
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}"#,
            r#""Gt" is not a valid label selector operator"#,
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"In","values":[]}]}"#,
            r#"label selector operator "In" needs a value for key "a""#,
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"NotIn"}]}"#,
            r#"label selector operator "NotIn" needs a value for key "a""#,
        ),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}"#,
            r#"label selector operator "Exists" takes no values for key "a""#,
        ),
        (r#"{"matchExpressions":[{"key":"/","operator":"Exists"}]}"#, r#"label selector has the invalid key "/""#),
        (
            r#"{"matchExpressions":[{"key":"a","operator":"In","values":["-"]}]}"#,
            r#"label selector has the invalid value "-" for key "a""#,
        ),
    ] {
        assert_eq!(api(json).unwrap_err().to_string(), message, "{json}");
    }
}

#[test]
fn labels_make_a_selector_of_their_own() {
    assert_eq!(Selector::of_labels([("b", "2"), ("a", "1")]), query("a=1,b=2"));
    assert_eq!(Selector::of_labels([]), Selector::everything());
}

/// A requirement as data, for the naive model.
#[derive(Debug, Clone)]
struct Row {
    key: String,
    operator: &'static str,
    values: Vec<String>,
}

impl Row {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            unknown => panic!("{unknown}"),
        }
    }
}

fn row() -> impl Strategy<Value = Row> {
    let values = || prop::collection::vec("[xyz]?", 1..4);
    prop_oneof![
        ("[abc]", values()).prop_map(|(key, values)| Row { key, operator: "In", values }),
        ("[abc]", values()).prop_map(|(key, values)| Row { key, operator: "NotIn", values }),
        "[abc]".prop_map(|key| Row { key, operator: "Exists", values: Vec::new() }),
        "[abc]".prop_map(|key| Row { key, operator: "DoesNotExist", values: Vec::new() }),
    ]
}

fn label_map() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[abc]", "[xyz]?", 0..4)
}

proptest! {
    #[test]
    fn matches_as_a_naive_model(wanted in label_map(), rows in prop::collection::vec(row(), 0..4), labels in label_map()) {
        let expressions: Vec<_> = rows
            .iter()
            .map(|row| serde_json::json!({ "key": row.key, "operator": row.operator, "values": row.values }))
            .collect();
        let json = serde_json::json!({ "matchLabels": wanted, "matchExpressions": expressions });
        let selector = api(&json.to_string()).unwrap();
        let expected = wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
            && rows.iter().all(|row| row.matches(&labels));
        let labels: Labels = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        prop_assert_eq!(selector.matches(&labels), expected);
        prop_assert_eq!(query(&selector.to_string()), selector);
    }

    #[test]
    fn no_query_makes_the_parser_panic_and_what_it_reads_it_writes(text in "[a-c, =!()<>0-9]{0,16}|(in|notin|[ ,()=a]){0,8}|.{0,16}") {
        if let Ok(selector) = text.parse::<Selector>() {
            prop_assert_eq!(query(&selector.to_string()), selector);
        }
    }
}

#[test]
fn the_labels_that_a_selector_requires_are_those_with_one_value() {
    let required = |text: &str| {
        let selector: Selector = text.parse().unwrap();
        selector.required_labels().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(required("tier=web,app==shop,!old,zone in (a,b),env!=test"), ["app=shop", "tier=web"]);
    assert_eq!(required(""), Vec::<String>::new());
    assert_eq!(Selector::nothing().required_labels().count(), 0);
}
