//! The warnings of policies beside upstream's.

use std::sync::Arc;

use serde::Deserialize;

use crate::validatingadmissionpolicy_status::kinds::{Kind, Role, params_of, type_name};
use crate::validatingadmissionpolicy_status::schema::{Document, SchemaError};
use crate::validatingadmissionpolicy_status::warnings::{
    CheckedKind, Checker, Params, Validation, Variable, Warning, equal_but_for_digits, without_digits,
};

/// A policy and the warnings that upstream gives. `warnings.jsonl` was recorded from `validating.TypeChecker` of
/// Kubernetes 1.37.2 with the schemas of `openapi.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    kinds: Vec<Kind>,
    validations: Vec<Validation>,
    variables: Vec<Variable>,
    param_kind: Option<ParamKind>,
    warnings: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParamKind {
    api_version: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expected {
    field_ref: String,
    warning: String,
}

const KINDS: [&str; 5] = ["Deployment", "Pod", "Widget", "Limits", "Hidden"];

fn types_of(document: &Document<'_>, kind: &Kind, role: Role) -> Result<CheckedKind, SchemaError> {
    let types = document.types_of(kind, &type_name(kind, role))?;
    Ok(CheckedKind { kind: kind.clone(), types: types.map(Arc::new) })
}

fn check(checker: &Checker, document: &Document<'_>, row: &Row) -> Vec<Warning> {
    let mut kinds: Vec<CheckedKind> =
        row.kinds.iter().filter_map(|kind| types_of(document, kind, Role::Object).ok()).collect();
    kinds.sort_by(|one, other| one.kind.cmp(&other.kind));
    let params = row.param_kind.as_ref().and_then(|params| params_of(&params.api_version, &params.kind));
    let params = params.map_or(Params::Undeclared, |kind| {
        let types = types_of(document, &kind, Role::Params).ok().and_then(|known| known.types);
        types.map_or(Params::Unknown, Params::Known)
    });
    checker.warnings(&row.validations, &row.variables, &kinds, &params)
}

/// Returns the part of a warning that is the same for both: everything, or the position of a syntax error.
fn comparable(text: &str) -> &str {
    text.split_once(": Syntax error: ").map_or(text, |(position, _)| position)
}

#[test]
fn warns_as_upstream_does() {
    let document = Document::parse(include_str!("openapi.json")).unwrap();
    let checker = Checker::new();
    let mut wrong = Vec::new();
    for line in include_str!("warnings.jsonl").lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let found = check(&checker, &document, &row);
        let found: Vec<(&str, String)> =
            found.iter().map(|each| (&*each.field_ref, without_digits(&each.warning, &KINDS))).collect();
        let expected: Vec<(&str, &str)> = row.warnings.iter().map(|each| (&*each.field_ref, &*each.warning)).collect();
        let same = expected.len() == found.len()
            && expected
                .iter()
                .zip(&found)
                .all(|(expected, found)| expected.0 == found.0 && comparable(expected.1) == comparable(&found.1));
        if !same {
            wrong.push(format!("{line}\n  upstream {expected:?}\n  here     {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn gives_equal_warnings_twice() {
    let document = Document::parse(include_str!("openapi.json")).unwrap();
    for line in include_str!("warnings.jsonl").lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        assert_eq!(check(&Checker::new(), &document, &row), check(&Checker::new(), &document, &row));
    }
}

#[test]
fn takes_warnings_of_another_clock_for_equal() {
    let warning =
        |text: &str| [Warning { field_ref: "spec.validations[0].expression".to_owned(), warning: text.to_owned() }];
    let kinds = ["Pod", "PodTemplate"];
    let equal = |one: &str, other: &str| equal_but_for_digits(&warning(one), &warning(other), &kinds);
    assert!(equal("(Pod1.spec, PodTemplate123456789)", "(Pod482113007.spec, PodTemplate2)"));
    assert!(equal("Kind=Pod: é", "Kind=Pod: é"));
    assert!(!equal("(Pod1.spec)", "(Pod.spec)"));
    assert!(!equal("1:2: Pod1", "1:3: Pod1"));
    assert!(!equal("Pod1", "PodTemplate1"));
    assert!(!equal_but_for_digits(&warning("a"), &[], &kinds));
}
