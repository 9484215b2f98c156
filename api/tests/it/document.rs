//! Documents: lossless reading, and edits that touch nothing else.

use kcm_api::views::ReplicaSetView;
use kcm_api::{Condition, ConditionStatus, Document, Documented, EditError, View};
use proptest::prelude::*;

fn document(json: &str) -> Document {
    Document::parse(json).expect("the case must be one object")
}

#[test]
fn keeps_order_numbers_escapes_and_repeated_keys() {
    let json = r#"{"z":1.50,"a":1e400,"n":-0,"big":123456789012345678901234567890,"s":"\u0041\/\ud83d\ude00\"é \\","a":{"a":1,"a":2},"":[],"lone":"\ud800"}"#;
    assert_eq!(document(json).as_str(), json);
}

#[test]
fn drops_whitespace_only_between_tokens() {
    let json = " {\n\t\"a b\" : [ 1 , \"x\\\" , y\" ,\r\n{ } ] , \"metadata\" : { \"name\" : \" n \" } }\n";
    assert_eq!(document(json).as_str(), r#"{"a b":[1,"x\" , y",{}],"metadata":{"name":" n "}}"#);
}

#[test]
fn drops_managed_fields_of_the_metadata_and_of_nothing_else() {
    for (json, kept) in [
        (r#"{"metadata":{"managedFields":[{"a":{}}],"name":"n"}}"#, r#"{"metadata":{"name":"n"}}"#),
        (r#"{"metadata":{"name":"n","managedFields":[]}}"#, r#"{"metadata":{"name":"n"}}"#),
        (r#"{"metadata":{"managed\u0046ields":[],"a":1,"managedFields":null}}"#, r#"{"metadata":{"a":1}}"#),
        (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
        (r#"{"m\u0065tadata":{"managedFields":[]}}"#, r#"{"m\u0065tadata":{}}"#),
        (r#"{"metadata":null}"#, r#"{"metadata":null}"#),
    ] {
        assert_eq!(document(json).as_str(), kept, "{json}");
    }
    let template = r#"{"managedFields":[],"spec":{"template":{"metadata":{"managedFields":[1]}}}}"#;
    assert_eq!(document(template).as_str(), template);
}

#[test]
fn what_is_not_one_object_is_refused() {
    for json in
        ["", "null", "[]", "1", "\"a\"", "{", "{}{}", "{}x", r#"{"a":}"#, r#"{"metadata":1}"#, r#"{"metadata":[]}"#]
    {
        assert!(Document::parse(json).is_err(), "{json}");
    }
}

#[test]
fn deep_nesting_neither_fails_nor_overflows() {
    let depth = 100_000;
    let json = format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let mut document = document(&json);
    document.set(&["b"], &1).unwrap();
    assert_eq!(document.get(&["b"]), Some("1"));
}

#[test]
fn reads_by_path() {
    let document = document(r#"{"a":{"b":[1],"c":"x","b":[2]},"n":null}"#);
    for (path, found) in [
        (&["a", "b"][..], Some("[2]")),
        (&["a", "c"], Some("\"x\"")),
        (&["n"], Some("null")),
        (&["n", "x"], None),
        (&["a", "b", "x"], None),
        (&["x"], None),
        (&[], Some(document.as_str())),
    ] {
        assert_eq!(document.get(path), found, "{path:?}");
        assert_eq!(document.raw(path).map(serde_json::value::RawValue::get), found, "{path:?}");
    }
}

#[test]
fn sets_in_place_or_at_the_end_and_makes_what_is_missing() {
    for (before, path, after) in [
        (r#"{"a":1,"b":2}"#, &["a"][..], r#"{"a":9,"b":2}"#),
        (r#"{"a":1}"#, &["b"], r#"{"a":1,"b":9}"#),
        (r"{}", &["a", "b", "c"], r#"{"a":{"b":{"c":9}}}"#),
        (r#"{"a":{}}"#, &["a", "b"], r#"{"a":{"b":9}}"#),
        (r#"{"a":null,"z":0}"#, &["a", "b"], r#"{"a":{"b":9},"z":0}"#),
        (r#"{"a":{"x":[ 1 ]},"z":0}"#, &["a", "b"], r#"{"a":{"x":[1],"b":9},"z":0}"#),
        (r#"{"a":1,"a":2}"#, &["a"], r#"{"a":1,"a":9}"#),
        (r#"{"\u0061":1}"#, &["a"], r#"{"\u0061":9}"#),
        (r"{}", &["a\"b/c"], r#"{"a\"b/c":9}"#),
    ] {
        let mut document = document(before);
        document.set(path, &9).unwrap();
        assert_eq!(document.as_str(), after, "{before} {path:?}");
    }
}

#[test]
fn removes_every_member_of_that_name_and_nothing_else() {
    for (before, path, after) in [
        (r#"{"a":1,"b":2,"c":3}"#, &["b"][..], r#"{"a":1,"c":3}"#),
        (r#"{"a":1}"#, &["a"], r"{}"),
        (r#"{"a":1,"b":0,"\u0061":2}"#, &["a"], r#"{"b":0}"#),
        (r#"{"a":{"b":1},"z":0}"#, &["a", "b"], r#"{"a":{},"z":0}"#),
        (r#"{"a":1}"#, &["b"], r#"{"a":1}"#),
        (r#"{"a":1}"#, &["a", "b"], r#"{"a":1}"#),
        (r#"{"a":null}"#, &["a", "b"], r#"{"a":null}"#),
    ] {
        let mut document = document(before);
        document.remove(path).unwrap();
        assert_eq!(document.as_str(), after, "{before} {path:?}");
    }
}

#[test]
fn an_edit_that_fails_changes_nothing() {
    let before = r#"{"a":{"b":[1]}}"#;
    let mut document = document(before);
    let failed = document.set(&["a", "b", "c", "d"], &9).unwrap_err();
    assert!(matches!(&failed, EditError::NotAnObject { path } if path == "a.b"), "{failed}");
    assert!(matches!(document.set(&[], &9), Err(EditError::EmptyPath)));
    assert!(matches!(document.remove(&[]), Err(EditError::EmptyPath)));
    let keys_that_are_no_text = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(matches!(document.set(&["x"], &keys_that_are_no_text), Err(EditError::Value { .. })));
    assert_eq!(document.as_str(), before);
}

#[test]
fn lists_are_read_item_by_item() {
    let document = document(r#"{"a":[{"x": 1.0},null],"n":null,"o":{}}"#);
    let items =
        |path: &[&str]| document.items(path).map(|items| items.iter().map(|item| item.get()).collect::<Vec<_>>());
    assert_eq!(items(&["a"]).unwrap(), vec![r#"{"x":1.0}"#, "null"]);
    assert_eq!(items(&["n"]).unwrap(), Vec::<&str>::new());
    assert_eq!(items(&["x", "y"]).unwrap(), Vec::<&str>::new());
    assert!(matches!(items(&["o"]), Err(EditError::NotAList { .. })));
}

#[test]
fn a_document_is_serialized_as_it_is() {
    let json = r#"{"b":1.0,"a":"\u0041"}"#;
    assert_eq!(serde_json::to_string(&[document(json)]).unwrap(), format!("[{json}]"));
}

fn condition(type_: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: ConditionStatus::True,
        last_update_time: None,
        last_transition_time: Some("2024-01-01T00:00:00.5Z".parse().expect("must be a time")),
        reason: "FailedCreate".into(),
        message: "no \"room\"".into(),
        ..Condition::default()
    }
}

const WRITTEN: &str = r#"{"type":"ReplicaFailure","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"FailedCreate","message":"no \"room\""}"#;

#[test]
fn a_condition_is_put_at_the_end_in_place_of_those_of_its_type() {
    for (before, after) in [
        (r"{}".to_owned(), format!(r#"{{"status":{{"conditions":[{WRITTEN}]}}}}"#)),
        (
            r#"{"status":{"conditions":null,"x":1}}"#.to_owned(),
            format!(r#"{{"status":{{"conditions":[{WRITTEN}],"x":1}}}}"#),
        ),
        (
            r#"{"status":{"conditions":[{"type":"ReplicaFailure"},{"type":"New","odd":1.0},7,{"type":"ReplicaFailure"}]}}"#
                .to_owned(),
            format!(r#"{{"status":{{"conditions":[{{"type":"New","odd":1.0}},7,{WRITTEN}]}}}}"#),
        ),
    ] {
        let mut document = document(&before);
        document.put_condition(&condition("ReplicaFailure")).unwrap();
        assert_eq!(document.as_str(), after);
    }
}

#[test]
fn removing_the_last_condition_removes_the_list() {
    for (before, after) in [
        (r#"{"status":{"conditions":[{"type":"ReplicaFailure"}],"x":1}}"#, r#"{"status":{"x":1}}"#),
        (
            r#"{"status":{"conditions":[{"type":"ReplicaFailure"},{"type":"B","c": 1}]}}"#,
            r#"{"status":{"conditions":[{"type":"B","c":1}]}}"#,
        ),
        (r#"{"status":{}}"#, r#"{"status":{}}"#),
        (r"{}", r"{}"),
    ] {
        let mut document = document(before);
        document.remove_condition("ReplicaFailure").unwrap();
        assert_eq!(document.as_str(), after);
    }
}

/// A replica set of an API server that knows more than we do, everywhere.
const FROM_THE_FUTURE: &str = r#"{
  "apiVersion": "apps/v1", "kind": "ReplicaSet", "futureTop": [1.0],
  "metadata": {"name": "web", "namespace": "a", "futureMeta": {"x": 1e3},
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "futureOwner": true}],
    "annotations": {"future/annotation": "\u0041"}, "finalizers": ["future/finalizer"]},
  "spec": {"replicas": 3, "futureSpec": {"deep": [null]},
    "selector": {"matchLabels": {"app": "web"}, "futureSelector": 1},
    "template": {"metadata": {"labels": {"app": "web"}, "futureTemplateMeta": 1},
      "spec": {"futurePod": {}, "containers": [{"name": "c", "futureContainer": "0.10"}]}}},
  "status": {"replicas": 3, "futureStatus": 7, "conditions": [{"type": "New", "status": "True", "futureCondition": 1.50}]}
}"#;

/// Fields of [`FROM_THE_FUTURE`] that no view knows.
const UNKNOWN: [&str; 12] = [
    r#""futureTop":[1.0]"#,
    r#""futureMeta":{"x":1e3}"#,
    r#""futureOwner":true"#,
    r#""future/annotation":"\u0041""#,
    r#""future/finalizer""#,
    r#""futureSpec":{"deep":[null]}"#,
    r#""futureSelector":1"#,
    r#""futureTemplateMeta":1"#,
    r#""futurePod":{}"#,
    r#""futureContainer":"0.10""#,
    r#""futureStatus":7"#,
    r#""futureCondition":1.50"#,
];

fn assert_nothing_is_lost(write: &str, document: &Document) {
    for unknown in UNKNOWN {
        assert!(document.as_str().contains(unknown), "{write} lost {unknown}: {document}");
    }
}

#[test]
fn unknown_fields_survive_each_kind_of_write() {
    let object = Documented::<ReplicaSetView>::decode(FROM_THE_FUTURE).unwrap();
    assert_nothing_is_lost("decoding", &object.document);

    let mut status = object.document.clone();
    for (name, count) in [("replicas", 2), ("readyReplicas", 1), ("observedGeneration", 4)] {
        status.set(&["status", name], &count).unwrap();
    }
    status.remove(&["status", "terminatingReplicas"]).unwrap();
    assert_nothing_is_lost("a status put", &status);

    status.put_condition(&condition("ReplicaFailure")).unwrap();
    assert_nothing_is_lost("a status put with a condition", &status);
    status.remove_condition("ReplicaFailure").unwrap();
    assert_nothing_is_lost("a status put without the condition", &status);

    let mut scaled = object.document.clone();
    scaled.set(&["spec", "replicas"], &5).unwrap();
    scaled.set(&["metadata", "annotations", "deployment.kubernetes.io/desired-replicas"], "5").unwrap();
    scaled.set(&["metadata", "labels", "pod-template-hash"], "abc").unwrap();
    assert_nothing_is_lost("a put of spec and metadata", &scaled);

    let mut pod = Document::parse("{}").unwrap();
    pod.set(&["metadata"], object.raw(&["spec", "template", "metadata"]).unwrap()).unwrap();
    pod.set(&["spec"], object.raw(&["spec", "template", "spec"]).unwrap()).unwrap();
    for unknown in [r#""futureTemplateMeta":1"#, r#""futurePod":{}"#, r#""futureContainer":"0.10""#] {
        assert!(pod.as_str().contains(unknown), "a pod from the template lost {unknown}: {pod}");
    }
}

#[test]
fn a_documented_view_reads_as_its_view() {
    let object = Documented::<ReplicaSetView>::decode(FROM_THE_FUTURE).unwrap();
    assert_eq!(object.replicas, 3);
    assert_eq!(object.meta().key.to_string(), "a/web");
    assert_eq!(object.raw(&["spec", "template", "metadata", "labels"]).unwrap().get(), r#"{"app":"web"}"#);
    assert!(!object.document.as_str().contains("managedFields"));
}

/// JSON text with every freedom of the notation that a server may use.
fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        string(),
    ];
    scalar.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            object(inner),
        ]
    })
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof!["[a-z {}\\[\\]:,é😀]{0,4}", "\\\\[\"\\\\/bfnrt]", "\\\\u[0-9a-fA-F]{4}"];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let key = prop_oneof!["\"[abc]\"", "\"\\\\u006[123]\"", string()];
    prop::collection::vec((key, value), 0..5)
        .prop_map(|members| members.into_iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>())
        .prop_map(|members| format!("{{{}}}", members.join(",")))
}

fn path() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abcd]", 1..4)
}

proptest! {
    #[test]
    fn compact_json_is_kept_byte_for_byte(json in object(json())) {
        let document = document(&json);
        prop_assert_eq!(document.as_str(), json);
    }

    #[test]
    fn what_is_set_is_read_back_and_setting_it_back_restores_the_document(json in object(json()), path in path()) {
        let before = document(&json);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut after = before.clone();
        if after.set(&path, "a value that is nowhere else").is_err() {
            prop_assert_eq!(&after, &before);
            return Ok(());
        }
        prop_assert_eq!(after.get(&path), Some("\"a value that is nowhere else\""));
        match before.get(&path) {
            Some(old) => {
                let old: &serde_json::value::RawValue = serde_json::from_str(old).unwrap();
                after.set(&path, old).unwrap();
                prop_assert_eq!(after, before);
            }
            None if path.len() == 1 || before.get(&path[..path.len() - 1]).is_some_and(|parent| parent != "null") => {
                after.remove(&path).unwrap();
                prop_assert_eq!(after, before);
            }
            None => {}
        }
    }

    #[test]
    fn an_edit_changes_one_stretch_of_the_text(json in object(json()), path in path()) {
        let before = document(&json);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut after = before.clone();
        if after.set(&path, &9).is_ok() {
            // A `null` on the way is replaced by an object.
            let is_null = |depth: usize| before.get(&path[..depth]).filter(|old| *old == "null");
            let replaced = before.get(&path).or_else(|| (1..path.len()).find_map(is_null)).map_or(0, str::len);
            let (before, after) = (before.as_str(), after.as_str());
            let same_front = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            let same_back = before.bytes().rev().zip(after.bytes().rev()).take_while(|(a, b)| a == b).count();
            prop_assert!(same_front + same_back + replaced >= before.len(), "{} became {}", before, after);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}|[{}\\[\\]:,\"\\\\u0-9a-c \n]{0,40}", path in path()) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Ok(mut document) = Document::parse(&text) {
            drop(document.get(&path).map(str::to_owned));
            drop(document.set(&path, &1));
            drop(document.remove(&path));
        }
    }
}
