//! Which tokens sign, and what changes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kcm_framework::api::Document;
use serde_json::json;

use super::{PAYLOAD, SIGNATURE, secret, signing, view};
use crate::bootstrap_signer::plan::{Data, Plan, Signatures, Unusable, check, plan};

fn now() -> Timestamp {
    "2026-01-02T12:00:00Z".parse().unwrap()
}

const LATER: &str = "2026-01-02T13:00:00Z";

#[test]
fn b4_a_token_signs_if_everything_is_right() {
    let with = |id, value, signs, expiration| {
        secret(
            "bootstrap-token-abc123",
            &[
                ("token-id", id),
                ("token-secret", value),
                ("usage-bootstrap-signing", signs),
                ("expiration", expiration),
            ],
        )
    };
    let named =
        |name| secret(name, &[("token-id", "abc123"), ("token-secret", "x"), ("usage-bootstrap-signing", "true")]);
    for (name, secret, expected) in [
        ("without an expiration", with("abc123", "x", "true", ""), Ok("abc123")),
        ("with a later expiration", with("abc123", "x", "true", LATER), Ok("abc123")),
        ("with an expiration of now", with("abc123", "x", "true", "2026-01-02T12:00:00Z"), Err(Unusable::Expired)),
        ("expired", with("abc123", "x", "true", "2026-01-02T11:00:00Z"), Err(Unusable::Expired)),
        ("with an expiration that is no time", with("abc123", "x", "true", "garbage"), Err(Unusable::Expired)),
        ("without the usage, expired", with("abc123", "x", "", "garbage"), Err(Unusable::Expired)),
        ("without the usage", with("abc123", "x", "", ""), Err(Unusable::Usage)),
        ("with another usage", with("abc123", "x", "True", ""), Err(Unusable::Usage)),
        ("without an id", with("", "x", "true", ""), Err(Unusable::Id)),
        ("with an id with a space", with("abc123 ", "x", "true", ""), Err(Unusable::Id)),
        ("without a value", with("abc123", "", "true", ""), Err(Unusable::NoSecret)),
        ("of any form", with("abc123", " ", "true", ""), Ok("abc123")),
        ("named otherwise", named("abc123"), Err(Unusable::Name)),
        ("named after another id", named("bootstrap-token-def456"), Err(Unusable::Id)),
        ("without data", secret("bootstrap-token-abc123", &[]), Err(Unusable::Id)),
    ] {
        assert_eq!(check(&view(&secret), now()), expected, "{name}");
    }
}

fn data(pairs: &[(&str, &str)]) -> Data {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn planned(data: &Data, tokens: &[serde_json::Value], kept: &[&str]) -> Plan {
    let tokens: Vec<_> = tokens.iter().map(view).collect();
    plan(data, tokens.iter().map(|token| &**token), &kept.iter().copied().collect(), now())
}

fn changes(plan: Plan) -> (Data, BTreeSet<String>) {
    let Plan::Sign(Signatures { set, remove, .. }) = plan else { panic!("there is a kubeconfig") };
    (set, remove)
}

const KEY: &str = "jws-kubeconfig-abc123";

#[test]
fn b3_without_a_kubeconfig_nothing_is_signed_and_an_empty_one_is() {
    assert_eq!(planned(&data(&[(KEY, "stale")]), &[signing("abc123", "")], &[]), Plan::NoKubeconfig);
    let (set, _) = changes(planned(&data(&[("kubeconfig", "")]), &[signing("abc123", "")], &[]));
    assert!(set[KEY].starts_with("eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiYzEyMyJ9.."));
}

#[test]
fn b6_signatures_are_added_replaced_and_removed_and_nothing_else_changes() {
    let token = || vec![signing("abc123", "")];
    let set = |pairs: &[(&str, &str)]| data(pairs);
    let removed = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    for (name, pairs, tokens, kept, expected) in [
        ("a new one", vec![], token(), vec![], (set(&[(KEY, SIGNATURE)]), removed(&[]))),
        ("as it must be", vec![(KEY, SIGNATURE)], token(), vec![], (set(&[]), removed(&[]))),
        ("a wrong one", vec![(KEY, "wrong")], token(), vec![], (set(&[(KEY, SIGNATURE)]), removed(&[]))),
        ("without a token", vec![(KEY, SIGNATURE)], vec![], vec![], (set(&[]), removed(&[KEY]))),
        (
            "of any writer",
            vec![("jws-kubeconfig-", "x"), ("jws-kubeconfig-!", "y"), ("jws-other", "z")],
            vec![],
            vec![],
            (set(&[]), removed(&["jws-kubeconfig-", "jws-kubeconfig-!"])),
        ),
        (
            "its token expired",
            vec![(KEY, SIGNATURE)],
            vec![signing("abc123", "2026-01-02T11:00:00Z")],
            vec![],
            (set(&[]), removed(&[KEY])),
        ),
        (
            "its token cannot be decoded",
            vec![(KEY, "x"), ("jws-kubeconfig-def456", "y")],
            vec![],
            vec!["abc123"],
            (set(&[]), removed(&["jws-kubeconfig-def456"])),
        ),
    ] {
        let all: Vec<_> = [("kubeconfig", PAYLOAD)].into_iter().chain(pairs).collect();
        assert_eq!(changes(planned(&data(&all), &tokens, &kept)), expected, "{name}");
    }
}

#[test]
fn d5_the_next_expiry_is_that_of_the_first_signing_token_to_expire() {
    let expiry = |tokens: &[serde_json::Value]| {
        let Plan::Sign(signatures) = planned(&data(&[("kubeconfig", PAYLOAD)]), tokens, &[]) else { unreachable!() };
        signatures.expires_at.map(|at| at.to_string())
    };
    assert_eq!(expiry(&[signing("abc123", "")]), None);
    let tokens = [
        signing("abc123", "2026-01-02T14:00:00Z"),
        signing("def456", LATER),
        signing("ghi789", "2026-01-02T11:00:00Z"),
        secret(
            "bootstrap-token-jkl012",
            &[("token-id", "jkl012"), ("token-secret", "x"), ("expiration", "2026-01-02T12:30:00Z")],
        ),
        signing("mno345", ""),
    ];
    assert_eq!(expiry(&tokens).as_deref(), Some(LATER));
}

#[test]
fn t9_the_document_keeps_what_is_not_a_signature() {
    let before = json!({
        "metadata": { "name": "cluster-info", "labels": { "a": "b" } },
        "binaryData": { "more": "AA==" },
        "data": { "kubeconfig": "a: \u{e9}\n", "jws-kubeconfig-def456": "x", "other": "y" },
        "immutable": false,
    });
    let Plan::Sign(signatures) =
        planned(&data(&[("kubeconfig", PAYLOAD), ("jws-kubeconfig-def456", "x")]), &[signing("abc123", "")], &[])
    else {
        unreachable!()
    };
    let changed = signatures.applied_to(&Document::parse(&before.to_string()).unwrap()).unwrap();
    let mut expected = before;
    expected["data"] = json!({ "kubeconfig": "a: \u{e9}\n", KEY: SIGNATURE, "other": "y" });
    assert_eq!(serde_json::from_str::<serde_json::Value>(changed.as_str()).unwrap(), expected);
}

#[test]
fn a_plan_in_words_has_no_value_of_a_token() {
    for (pairs, tokens, words) in [
        (vec![], vec![], "does nothing: cluster-info has no data.kubeconfig to sign"),
        (vec![("kubeconfig", PAYLOAD)], vec![], "the signatures of 0 tokens are right"),
        (
            vec![("kubeconfig", PAYLOAD)],
            vec![signing("abc123", LATER)],
            "writes 1 and removes 0 signatures, for 1 tokens; the next token expires at 2026-01-02T13:00:00Z",
        ),
    ] {
        assert_eq!(planned(&data(&pairs), &tokens, &[]).explain(), words);
    }
}
