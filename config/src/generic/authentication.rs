//! The settings of authentication on the HTTPS port.

use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Authentication";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("authentication-kubeconfig", SECTION, Initial::String("")).help("A kubeconfig whose user may create TokenReviews. Without it every token is anonymous, and no client CA is read from the cluster."),
    Row::new("authentication-skip-lookup", SECTION, Initial::Bool(false)).help("Do not read missing settings of authentication from the cluster."),
    Row::new("authentication-token-webhook-cache-ttl", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("How long the answer of a TokenReview counts."),
    Row::new("authentication-tolerate-lookup-failure", SECTION, Initial::Bool(false)).help("Start although missing settings of authentication cannot be read from the cluster. Every request may be anonymous then."),
    Row::new("client-ca-file", SECTION, Initial::String("")).help("A bundle of authorities: a client with a certificate of one of them is its CommonName."),
    Row::new("requestheader-allowed-names", SECTION, Initial::Strings(&[])).help("The CommonNames of clients that may name the user in headers; none for every certificate of --requestheader-client-ca-file.").check(checks::no_blank_items),
    Row::new("requestheader-client-ca-file", SECTION, Initial::String("")).help("A bundle of authorities for the certificates of clients that name the user in headers."),
    Row::new("requestheader-extra-headers-prefix", SECTION, Initial::Strings(&["x-remote-extra-"])).help("How headers with further attributes of the user begin.").check(checks::no_blank_items),
    Row::new("requestheader-group-headers", SECTION, Initial::Strings(&["x-remote-group"])).help("The headers that name the groups of the user.").check(checks::no_blank_items),
    Row::new("requestheader-uid-headers", SECTION, Initial::Strings(&[])).help("The headers that name the UID of the user; of any, X-Remote-Uid is one.").check(uid_headers),
    Row::new("requestheader-username-headers", SECTION, Initial::Strings(&["x-remote-user"])).help("The headers that name the user.").check(checks::no_blank_items),
];

/// Upstream refuses a list without the header that API aggregation sends.
fn uid_headers(value: &Value) -> Result<(), String> {
    checks::no_blank_items(value)?;
    let Value::Strings(headers) = value else { return Ok(()) };
    let has_standard = headers.iter().any(|header| header.eq_ignore_ascii_case("X-Remote-Uid"));
    if has_standard || headers.is_empty() { Ok(()) } else { Err("must include X-Remote-Uid".to_owned()) }
}
