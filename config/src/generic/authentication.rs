//! The settings of authentication on the HTTPS port.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Authentication";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("authentication-kubeconfig", SECTION, Initial::String("")).help("Kubeconfig for TokenReviews and for reading client CAs from the cluster. If empty, bearer tokens count as anonymous and no CA is read."),
    Row::new("authentication-skip-lookup", SECTION, Initial::Bool(false)).help("Do not complete these flags from the ConfigMap kube-system/extension-apiserver-authentication."),
    Row::new("authentication-token-webhook-cache-ttl", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("Time for which the result of a TokenReview is cached."),
    Row::new("authentication-tolerate-lookup-failure", SECTION, Initial::Bool(false)).help("Start even if the authentication settings cannot be read from the cluster. Every request may then count as anonymous."),
    Row::new("client-ca-file", SECTION, Initial::String("")).help("CA bundle for client certificates. A client with a certificate of these CAs is authenticated as the user in its CommonName."),
    Row::new("requestheader-allowed-names", SECTION, Initial::Strings(&[])).help("CommonNames of front proxies. If empty, any certificate of --requestheader-client-ca-file is accepted.").check(checks::no_blank_items),
    Row::new("requestheader-client-ca-file", SECTION, Initial::String("")).help("CA bundle for front proxies. Only their requests may name the user in headers."),
    Row::new("requestheader-extra-headers-prefix", SECTION, Initial::Strings(&["x-remote-extra-"])).help("Prefixes of the headers with extra user attributes.").check(checks::no_blank_items),
    Row::new("requestheader-group-headers", SECTION, Initial::Strings(&["x-remote-group"])).help("Headers with the user's groups.").check(checks::no_blank_items),
    Row::new("requestheader-uid-headers", SECTION, Initial::Strings(&[])).help("Headers with the user's UID. If not empty, X-Remote-Uid must be one of them.").check(uid_headers),
    Row::new("requestheader-username-headers", SECTION, Initial::Strings(&["x-remote-user"])).help("Headers with the user's name.").check(checks::no_blank_items),
];

/// Upstream refuses a list without the header that API aggregation sends.
fn uid_headers(value: &Value) -> Result<(), String> {
    checks::no_blank_items(value)?;
    let Value::Strings(headers) = value else { return Ok(()) };
    let has_standard = headers.iter().any(|header| header.eq_ignore_ascii_case("X-Remote-Uid"));
    if has_standard || headers.is_empty() { Ok(()) } else { Err("must include X-Remote-Uid".to_owned()) }
}
