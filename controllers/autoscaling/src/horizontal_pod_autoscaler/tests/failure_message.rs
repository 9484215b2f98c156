//! The messages of failed requests.

use crate::horizontal_pod_autoscaler::backends::chosen_version;
use crate::horizontal_pod_autoscaler::failure_message::{of_code, shortened};

#[test]
fn a_body_that_is_no_status_becomes_the_message_of_client_go() {
    for (code, message) in [
        (400, "the server rejected our request for an unknown reason"),
        (401, "the server has asked for the client to provide credentials"),
        (403, "a \"b\""),
        (404, "the server could not find the requested resource"),
        (405, "the server does not allow this method on the requested resource"),
        (409, "the server reported a conflict"),
        (418, "the server responded with the status code 418 but did not return more information"),
        (422, "the server rejected our request due to an error in our request"),
        (429, "the server has received too many requests and has asked us to try again later"),
        (500, "an error on the server (\"a \\\"b\\\"\") has prevented the request from succeeding"),
        (502, "an error on the server (\"a \\\"b\\\"\") has prevented the request from succeeding"),
        (503, "the server is currently unable to handle the request"),
    ] {
        assert_eq!(of_code(code, "a \"b\""), message, "{code}");
    }
}

#[test]
fn a_long_message_is_shortened_between_characters() {
    assert_eq!(shortened("é".repeat(1024)), "é".repeat(1024));
    assert_eq!(shortened("é".repeat(1025)), "é".repeat(1024) + "…");
}

#[test]
fn the_custom_metrics_api_is_read_in_the_preferred_version_or_the_first_that_is_known() {
    for (preferred, versions, expected) in [
        ("v1beta1", &["v1beta2", "v1beta1"][..], Ok("v1beta1")),
        ("v1", &["v1", "v1beta1", "v1beta2"], Ok("v1beta1")),
        ("", &["v1beta2"], Ok("v1beta2")),
        ("v1", &["v1"], Err("no known available metric versions found")),
        ("", &[], Err("no known available metric versions found")),
    ] {
        let versions: Vec<_> = versions.iter().map(|version| serde_json::json!({ "version": version })).collect();
        let group = serde_json::json!({ "preferredVersion": { "version": preferred }, "versions": versions });
        let found = chosen_version(group.to_string().as_bytes());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{preferred} of {versions:?}");
    }
}
