use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("the case must be JSON")
}

fn normal(json: &str) -> String {
    normal_form(raw(json))
}

#[test]
fn the_hash_of_a_template_never_changes() {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}).to_string();
    assert_eq!(
        normal(&template),
        r#"{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c"}]}}"#,
        "the hashed JSON must never change"
    );
    assert_eq!(template_hash(raw(&template), None), "j96qkpn57p");
    assert_eq!(template_hash(raw(&template), Some(0)), "v9qkd4d4vj");
    assert_eq!(template_hash(raw(&template), Some(1)), "hwkt7ptbt6");
}

#[test]
fn a_hash_has_ten_characters_of_upstreams_alphabet() {
    for (number, text) in
        [(0, "bbbbbbbbbb"), (26, "9bbbbbbbbb"), (27, "bcbbbbbbbb"), (27_u64.pow(10) - 1, "9999999999")]
    {
        assert_eq!(spell(number), text);
    }
    assert_eq!(spell(u64::MAX).len(), 10);
}

#[test]
fn each_value_has_one_normal_form() {
    for (json, form) in [
        (r#"{"b": 1.0, "a": [ 1e2, -0 ]}"#, r#"{"a":[1e2,0],"b":1}"#),
        (r#"{"a":"\u0041\/\u00e9\n\u001f\"\ud83d\ude00"}"#, r#"{"a":"A/é\n\u001f\"😀"}"#),
        (r#"{"a":null,"b":[ ],"c":{},"d":[null],"e":false,"f":""}"#, r#"{"c":{},"d":[null],"e":false,"f":""}"#),
        (
            r#"{"spec":{"overhead":{"cpu":"1500m","memory": 1e3,"odd":"much"}}}"#,
            r#"{"spec":{"overhead":{"cpu":"15e-1","memory":"1e3","odd":"much"}}}"#,
        ),
        (r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
        (r#"{"a":"\ud800"}"#, r#"{"a":"\ud800"}"#),
    ] {
        assert_eq!(normal(json), form, "{json}");
    }
}

#[test]
fn deep_nesting_counts_and_does_not_overflow() {
    let deep = |leaf: u8| format!(r#"{{"spec":{}{leaf}{}}}"#, r#"{"a":["#.repeat(50_000), "]}".repeat(50_000));
    assert!(same_template(raw(&deep(1)), raw(&format!(" {}", deep(1)))));
    assert!(!same_template(raw(&deep(1)), raw(&deep(2))));
    assert_eq!(template_hash(raw(&deep(1)), None), template_hash(raw(&deep(1).replace(':', ": ")), None));
}

/// A template of few distinct names and values, so that keys repeat and often match fields of the shape table.
fn template() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(1)),
        Just(json!(0.5)),
        Just(json!("1")),
        Just(json!("1000m")),
        Just(json!("1Ki")),
        Just(json!("é\n")),
        Just(json!(true)),
    ];
    let value = leaf.prop_recursive(5, 24, 3, |inner| {
        let name = prop::sample::select(&[
            "metadata",
            "labels",
            "pod-template-hash",
            "spec",
            "containers",
            "resources",
            "limits",
            "overhead",
            "emptyDir",
            "new",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    (value.clone(), value.clone(), value).prop_map(
        |(labels, pod, more)| json!({"metadata": {"labels": labels}, "spec": {"containers": [pod], "overhead": more}}),
    )
}

/// Writes a value as another serializer might: with other escapes, number formats, member order and whitespace, and
/// with `null` or an empty list for an absent field.
fn rewritten(value: &Value, seed: u64) -> String {
    let other = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) + 1;
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, value)| format!("\"{name}\" : {}", rewritten(value, other))).collect();
            members.push(["\"unset\":null", "\"unset\":[ ]"][usize::from(seed.is_multiple_of(2))].to_owned());
            if seed.is_multiple_of(3) {
                members.reverse();
            }
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) if items.is_empty() => ["[]", "[ ]"][usize::from(seed.is_multiple_of(2))].to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| rewritten(item, other)).collect();
            format!("[ {} ]", items.join(" ,"))
        }
        Value::Number(number) if seed.is_multiple_of(2) => format!("{number}e0"),
        Value::String(text) if seed.is_multiple_of(2) => {
            let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{}\"", units.concat())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

proptest! {
    #[test]
    fn being_the_same_is_having_the_same_normal_form(one in template(), other in template()) {
        let (one, other) = (one.to_string(), other.to_string());
        let (one, other) = (raw(&one), raw(&other));
        // Equality of strings is an equivalence relation, so this shows that `same_template` is one.
        prop_assert_eq!(same_template(one, other), normal_form(one) == normal_form(other));
        if same_template(one, other) {
            prop_assert_eq!(template_hash(one, Some(3)), template_hash(other, Some(3)));
        }
    }

    #[test]
    fn the_normal_form_is_the_same_template_and_its_own_normal_form(template in template(), seed: u32) {
        let text = rewritten(&template, seed.into());
        let form = normal(&text);
        prop_assert!(same_template(raw(&text), raw(&form)), "{} {}", text, form);
        prop_assert_eq!(normal(&form), form);
    }

    #[test]
    fn notation_is_ignored(template in template(), seed: u32) {
        let (one, other) = (template.to_string(), rewritten(&template, seed.into()));
        prop_assert!(same_template(raw(&one), raw(&other)), "{} {}", one, other);
        prop_assert_eq!(template_hash(raw(&one), None), template_hash(raw(&other), None));
    }

    #[test]
    fn an_unknown_field_counts_at_every_path(template in template(), at: prop::sample::Index, value in "[a-z]{1,3}") {
        let mut paths = Vec::new();
        objects(&template, String::new(), &mut paths);
        // A label by that name is ignored with all that is in it.
        paths.retain(|path| !path.starts_with("/metadata/labels/pod-template-hash"));
        let mut changed = template.clone();
        let object = changed.pointer_mut(&paths[at.index(paths.len())]).expect("must lead to an object of the same value");
        object["futureField"] = json!(value);
        let (one, other) = (template.to_string(), changed.to_string());
        prop_assert!(!same_template(raw(&one), raw(&other)), "{} {}", one, other);
        prop_assert_ne!(template_hash(raw(&one), None), template_hash(raw(&other), None));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[{}\\[\\]:,\"\\\\u0-9a-eE.+-]{0,40}") {
        if let Ok(template) = serde_json::from_str::<&RawValue>(&text) {
            prop_assert_eq!(normal(&normal_form(template)), normal_form(template));
        }
    }
}

fn objects(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                objects(member, format!("{path}/{name}"), paths);
            }
            paths.push(path);
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                objects(item, format!("{path}/{at}"), paths);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
