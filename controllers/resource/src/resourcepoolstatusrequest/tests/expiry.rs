//! Times at which requests are deleted.

use serde_json::{Value, json};

use super::{request, request_view};
use crate::resourcepoolstatusrequest::expiry::expires_at;

#[test]
fn s90_requests_expire_after_an_hour_or_a_day() {
    let condition =
        |type_: &str| json!({ "conditions": [{ "type": type_, "lastTransitionTime": "2026-01-02T10:01:00Z" }] });
    for (name, created, status, expires) in [
        ("pending", json!("2026-01-02T10:00:00Z"), Value::Null, Some("2026-01-03T10:00:00Z")),
        ("completed", json!("2026-01-02T10:00:00Z"), condition("Complete"), Some("2026-01-02T11:01:00Z")),
        ("failed", json!("2026-01-02T10:00:00Z"), condition("Failed"), Some("2026-01-02T11:01:00Z")),
        ("without condition", json!("2026-01-02T10:00:00Z"), json!({}), Some("2026-01-02T11:00:00Z")),
        ("of unknown age", Value::Null, Value::Null, None),
    ] {
        let mut request = request(&json!({}));
        request["metadata"]["creationTimestamp"] = created;
        request["status"] = status;
        let found = expires_at(&request_view(&request)).map(|time| time.to_string());
        assert_eq!(found.as_deref(), expires, "{name}");
    }
}
