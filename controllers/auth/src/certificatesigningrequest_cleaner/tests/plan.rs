//! Reasons to delete a request; the rows of upstream's `TestCleanerWithApprovedExpiredCSR` and of the rules.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::View as _;
use serde_json::{Value, json};

use crate::certificatesigningrequest_cleaner::plan::{Reason, reason};
use crate::shared::signing_request::SigningRequest;
use crate::tests::signing_requests::{certificate, expired_certificate};

fn now() -> Timestamp {
    "2026-11-28T12:00:00Z".parse().unwrap()
}

fn ago(minutes: i64) -> String {
    (now() - SignedDuration::from_mins(minutes)).to_string()
}

fn condition(type_: &str, minutes: i64) -> Value {
    json!({ "type": type_, "status": "True", "lastUpdateTime": ago(minutes) })
}

/// Name, age of the request in minutes, conditions, certificate, reason.
type Case<'a> = (&'a str, i64, Vec<Value>, Option<&'a str>, Option<Reason>);

/// A request that was created so many minutes ago.
fn judge(created: i64, conditions: &[Value], certificate: Option<&str>) -> Option<Reason> {
    let mut object = json!({
        "metadata": { "name": "a", "creationTimestamp": ago(created) },
        "spec": { "signerName": "example.com/signer", "request": "", "usages": [] },
        "status": { "conditions": conditions },
    });
    if let Some(certificate) = certificate {
        object["status"]["certificate"] = certificate.into();
    }
    reason(&SigningRequest::decode(&object.to_string()).unwrap(), now())
}

#[test]
fn c2_c3_c4_reasons() {
    const HOUR: i64 = 60;
    const DAY: i64 = 24 * 60;
    let (valid, expired) = (certificate(), expired_certificate());
    let (valid, expired) = (Some(valid.as_str()), Some(expired.as_str()));
    let no_certificate = Some("bm8gY2VydGlmaWNhdGU=");
    let untimed = json!({ "type": "Approved", "status": "True" });
    let untrue = json!({ "type": "Denied", "status": "False", "lastUpdateTime": ago(HOUR + 1) });
    let cases: [Case<'_>; 21] = [
        ("issued for more than an hour", 0, vec![condition("Approved", HOUR + 1)], valid, Some(Reason::Issued)),
        ("issued for an hour", 0, vec![condition("Approved", HOUR)], valid, None),
        ("issued just now", 0, vec![condition("Approved", 1)], valid, None),
        ("approved and not issued", 0, vec![condition("Approved", HOUR + 1)], None, None),
        ("approved and not issued for a day", 0, vec![condition("Approved", DAY + 1)], None, Some(Reason::Unissued)),
        ("approved and not issued for less", 0, vec![condition("Approved", DAY)], None, None),
        ("denied for more than an hour", 0, vec![condition("Denied", HOUR + 1)], None, Some(Reason::Denied)),
        ("denied for an hour", 0, vec![condition("Denied", HOUR)], None, None),
        ("failed for more than an hour", 0, vec![condition("Failed", HOUR + 1)], None, Some(Reason::Failed)),
        ("failed for an hour", 0, vec![condition("Failed", HOUR)], None, None),
        (
            "approved, then failed",
            0,
            vec![condition("Approved", 1), condition("Failed", HOUR + 1)],
            None,
            Some(Reason::Failed),
        ),
        ("pending for more than a day", DAY + 1, vec![], None, Some(Reason::Pending)),
        ("pending for a day", DAY, vec![], None, None),
        ("a certificate without approval, for more than a day", DAY + 1, vec![], valid, Some(Reason::Pending)),
        ("expired", 0, vec![condition("Approved", 1)], expired, Some(Reason::Expired)),
        ("expired, without approval", 0, vec![], expired, None),
        ("no certificate in the field", 0, vec![condition("Approved", 1)], no_certificate, None),
        (
            "no certificate in the field, for long",
            0,
            vec![condition("Approved", HOUR + 1)],
            no_certificate,
            Some(Reason::Issued),
        ),
        ("a condition without a time", DAY + 1, vec![untimed], None, None),
        ("a condition that is not true", 0, vec![untrue], None, Some(Reason::Denied)),
        ("another condition, for more than a day", DAY + 1, vec![condition("Other", DAY + 1)], None, None),
    ];
    for (name, created, conditions, certificate, expected) in cases {
        assert_eq!(judge(created, &conditions, certificate), expected, "{name}");
    }
}
