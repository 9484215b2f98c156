//! The settings of the HTTPS port.

use std::net::{IpAddr, Ipv4Addr};

use super::tls;
use crate::checks;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Secure serving";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("bind-address", SECTION, Initial::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED))).help("The address of the secure port; 0.0.0.0 or :: is every address of both families."),
    Row::new("cert-dir", SECTION, Initial::String("")).help("A folder with the certificate of the secure port; --tls-cert-file and --tls-private-key-file come before it."),
    Row::new("disable-http2-serving", SECTION, Initial::Bool(false)).help("Serve HTTP/1.1 only."),
    Row::new("http2-max-streams-per-connection", SECTION, Initial::Int(0)).help("How many requests an HTTP/2 client may have open at once on a connection; 0 for the default."),
    Row::new("permit-address-sharing", SECTION, Initial::Bool(false)).help("Listen with SO_REUSEADDR, which does not wait for connections in TIME_WAIT after a restart and also takes an address that another program has in part."),
    Row::new("permit-port-sharing", SECTION, Initial::Bool(false)).help("Listen with SO_REUSEPORT: several processes may share the address and the port."),
    Row::new("secure-port", SECTION, Initial::Int(10257)).help("The port that serves HTTPS with authentication and authorization; 0 for none.").check(port),
    Row::new("tls-cert-file", SECTION, Initial::String("")).help("The certificate of the secure port in PEM, those of its authorities after it. Without one, a self-signed certificate is made."),
    Row::new("tls-cipher-suites", SECTION, Initial::Strings(&[])).help("The cipher suites of TLS 1.2 that the secure port offers, by their IANA names; none for the defaults.").check(tls::cipher_suites),
    Row::new("tls-curve-preferences", SECTION, Initial::Int32s(&[])).help("Key-exchange groups, by IANA number, in any order. Empty: the defaults. 25 (P-521) and 4589 are refused.").check(tls::curves),
    Row::new("tls-min-version", SECTION, Initial::String("")).help("Minimum TLS version: VersionTLS12 (also if empty) or VersionTLS13. Older versions are refused.").check(tls::version),
    Row::new("tls-private-key-file", SECTION, Initial::String("")).help("The private key of --tls-cert-file in PEM."),
    Row::new("tls-sni-cert-key", SECTION, Initial::CertKeys).help("A certificate for certain host names, as CERT,KEY or CERT,KEY:NAME,NAME; names may begin with *. and default to those of the certificate. Several flags add up."),
];

fn port(value: &Value) -> Result<(), String> {
    checks::between(value, 0, 65535)
}
