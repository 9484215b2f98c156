//! The types of schemas.

use kcm_cel::{Type, TypeProvider};

use crate::validatingadmissionpolicy_status::kinds::Kind;
use crate::validatingadmissionpolicy_status::schema::{Document, SchemaError};
use crate::validatingadmissionpolicy_status::types::{Types, escape};

fn kind() -> Kind {
    Kind { group: String::new(), version: "v1".to_owned(), kind: "K".to_owned() }
}

/// A document whose kind has one field `f`, and other schemas by name.
fn document(field: &str, others: &str) -> String {
    format!(
        r#"{{"components":{{"schemas":{{"K":{{
            "type":"object","properties":{{"f":{field}}},
            "x-kubernetes-group-version-kind":[{{"group":"","version":"v1","kind":"K"}}]}}{others}}}}}}}"#
    )
}

fn types(json: &str) -> Result<Option<(Type, Types)>, SchemaError> {
    Document::parse(json)?.types_of(&kind(), "K1")
}

/// Returns the type of the field.
fn field(schema: &str, others: &str) -> Option<String> {
    let (_, types) = types(&document(schema, others)).unwrap().unwrap();
    types.find_field("K1", "f").map(|of| of.to_string())
}

#[test]
fn converts_schemas() {
    for (schema, expected) in [
        (r#"{"type":"string"}"#, Some("string")),
        (r#"{"type":"string","enum":["a"]}"#, Some("string")),
        (r#"{"type":"string","format":"byte"}"#, Some("bytes")),
        (r#"{"type":"string","format":"duration"}"#, Some("duration")),
        (r#"{"type":"string","format":"date"}"#, Some("timestamp")),
        (r#"{"type":"string","format":"date-time"}"#, Some("timestamp")),
        (r#"{"type":"boolean"}"#, Some("bool")),
        (r#"{"type":"number","format":"float"}"#, Some("double")),
        (r#"{"type":"integer","nullable":true}"#, Some("int")),
        (r#"{"type":["integer","string"]}"#, Some("int")),
        (r#"{"type":"string","format":"int-or-string"}"#, Some("dyn")),
        (r#"{"x-kubernetes-int-or-string":true}"#, Some("dyn")),
        (r#"{"x-kubernetes-int-or-string":false}"#, None),
        (r#"{"x-kubernetes-preserve-unknown-fields":true}"#, None),
        (r#"{"oneOf":[{"type":"string"}]}"#, None),
        (r#"{"type":"array"}"#, None),
        (r#"{"type":"array","items":{}}"#, None),
        (r#"{"type":"array","items":{"type":"array","items":{"type":"string"}}}"#, Some("list(list(string))")),
        (r#"{"type":"object"}"#, Some("K1.f")),
        (r#"{"type":"object","additionalProperties":true}"#, Some("K1.f")),
        (r#"{"type":"object","additionalProperties":{"type":"integer"}}"#, Some("map(string, int)")),
        (r#"{"type":"object","additionalProperties":{}}"#, None),
        (r#"{"type":"object","additionalProperties":{"type":"object"}}"#, Some("map(string, K1.f.@elem)")),
        (r#"{"type":"array","items":{"type":"object"}}"#, Some("list(K1.f.@idx)")),
        (r##"{"$ref":"#/components/schemas/S"}"##, Some("string")),
        (r##"{"allOf":[{"$ref":"#/components/schemas/S"}],"type":"integer"}"##, Some("string")),
    ] {
        let others = r#","S":{"type":"string"}"#;
        assert_eq!(field(schema, others).as_deref(), expected, "{schema}");
    }
}

#[test]
fn ends_references_that_contain_themselves() {
    let node = r##","N":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/N"}}}"##;
    let (_, types) = types(&document(r##"{"$ref":"#/components/schemas/N"}"##, node)).unwrap().unwrap();
    assert_eq!(types.find_field("K1.f", "next"), Some(Type::object("K1.f.next")));
    assert_eq!(types.find_field("K1.f.next", "next"), None);
}

#[test]
fn refuses_documents_that_cannot_be_used() {
    assert!(matches!(types("{"), Err(SchemaError::Document(_))));
    assert!(matches!(types("{}"), Err(SchemaError::NotFound(_))));
    let missing = document(r##"{"$ref":"#/components/schemas/S"}"##, "");
    assert!(matches!(types(&missing), Err(SchemaError::NotFound(name)) if name == "S"));
    let wrong = document(r##"{"$ref":"#/components/schemas/S"}"##, r#","S":{"type":1}"#);
    assert!(matches!(types(&wrong), Err(SchemaError::Schema { name, .. }) if name == "S"));
}

#[test]
fn refuses_schemas_that_grow_without_bound() {
    // Each schema refers twice to the next one.
    let wide = (0..40).map(|i| {
        let next = format!(r##"{{"$ref":"#/components/schemas/S{}"}}"##, i + 1);
        format!(r#","S{i}":{{"type":"object","properties":{{"a":{next},"b":{next}}}}}"#)
    });
    let wide = wide.chain([r#","S40":{"type":"string"}"#.to_owned()]).collect::<Vec<_>>().concat();
    let wide = document(r##"{"$ref":"#/components/schemas/S0"}"##, &wide);
    assert!(matches!(types(&wide), Err(SchemaError::TooLarge(_))));

    let deep = (0..400)
        .map(|i| format!(r##","S{i}":{{"type":"array","items":{{"$ref":"#/components/schemas/S{}"}}}}"##, i + 1));
    let deep = deep.chain([r#","S400":{"type":"string"}"#.to_owned()]).collect::<Vec<_>>().concat();
    let deep = document(r##"{"$ref":"#/components/schemas/S0"}"##, &deep);
    assert!(matches!(types(&deep), Err(SchemaError::TooLarge(_))));

    // Each type is named after its path, which has one long part.
    let many = (0..3000).map(|i| format!(r#""f{i}":{{"type":"object"}}"#)).collect::<Vec<_>>().join(",");
    let long = "a".repeat(15_000);
    let long = format!(r#"{{"type":"object","properties":{{"{long}":{{"type":"object","properties":{{{many}}}}}}}}}"#);
    assert!(matches!(types(&document(&long, "")), Err(SchemaError::TooLarge(_))));

    let deep = document(&format!("{}{}", r#"{"items":"#.repeat(10_000), "}".repeat(10_000)), "");
    assert!(types(&deep).is_err());
}

#[test]
fn declares_what_every_resource_has() {
    let (_, found) = types(&document(r#"{"type":"string"}"#, "")).unwrap().unwrap();
    assert_eq!(found.find_field("K1", "kind"), Some(Type::String));
    assert_eq!(found.find_field("K1.metadata", "generateName"), Some(Type::String));
    assert_eq!(found.find_field("K1.metadata", "namespace"), None);
}

#[test]
fn follows_the_reference_of_a_kind() {
    let json = r##"{"components":{"schemas":{
        "K":{"$ref":"#/components/schemas/S","x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"K"}]},
        "S":{"type":"object","properties":{"f":{"type":"integer"}}}}}}"##;
    let (_, found) = types(json).unwrap().unwrap();
    assert_eq!(found.find_field("K1", "f"), Some(Type::Int));
    assert_eq!(found.find_field("K1", "kind"), Some(Type::String));
}

#[test]
fn escapes_names_of_fields() {
    for (name, expected) in [
        ("a", Some("a")),
        ("_a1", Some("_a1")),
        ("", None),
        ("1a", None),
        ("é", None),
        ("a b", None),
        ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
        ("a__b", Some("a__underscores__b")),
        ("a___b", Some("a__underscores___b")),
        ("-", Some("__dash__")),
        ("namespace", Some("__namespace__")),
        ("in", Some("__in__")),
        ("int", Some("int")),
    ] {
        assert_eq!(escape(name).as_deref(), expected, "{name}");
    }
}
