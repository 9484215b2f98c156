//! The settings of the HTTPS port.

use std::net::{IpAddr, Ipv4Addr};

use super::tls;
use crate::checks;
use crate::row::{Initial, Row};
use crate::value::Value;

const SECTION: &str = "Secure serving";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("bind-address", SECTION, Initial::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED))).help("IP address to listen on. 0.0.0.0 and :: stand for all addresses of both families."),
    Row::new("cert-dir", SECTION, Initial::String("")).help("Directory for a self-signed certificate. Not used if --tls-cert-file is given."),
    Row::new("disable-http2-serving", SECTION, Initial::Bool(false)).help("Serve HTTP/1.1 only."),
    Row::new("http2-max-streams-per-connection", SECTION, Initial::Int(0)).help("Maximum number of concurrent requests of a client on one HTTP/2 connection. 0: the default."),
    Row::new("permit-address-sharing", SECTION, Initial::Bool(false)).help("Accepted for compatibility. On Linux, SO_REUSEADDR is always set, by upstream as well."),
    Row::new("permit-port-sharing", SECTION, Initial::Bool(false)).help("Listen with SO_REUSEPORT, so that several processes share the address and port."),
    Row::new("secure-port", SECTION, Initial::Int(10257)).help("Port for HTTPS with authentication and authorization. 0: none.").check(port),
    Row::new("tls-cert-file", SECTION, Initial::String("")).help("PEM file with the serving certificate and its intermediate CAs. If empty, a self-signed certificate is created."),
    Row::new("tls-cipher-suites", SECTION, Initial::Strings(&[])).help("Cipher suites for TLS 1.2, by IANA name. Empty: the defaults.").check(tls::cipher_suites),
    Row::new("tls-curve-preferences", SECTION, Initial::Int32s(&[])).help("Key-exchange groups, by IANA number, in any order. Empty: the defaults. 25 (P-521) and 4589 are refused.").check(tls::curves),
    Row::new("tls-min-version", SECTION, Initial::String("")).help("Minimum TLS version: VersionTLS12 (also if empty) or VersionTLS13. Older versions are refused.").check(tls::version),
    Row::new("tls-private-key-file", SECTION, Initial::String("")).help("PEM file with the private key of --tls-cert-file."),
    Row::new("tls-sni-cert-key", SECTION, Initial::CertKeys).help("Certificate for some host names, as CERT,KEY or CERT,KEY:NAME,NAME. Names may begin with \"*.\"; without names, those in the certificate are used. May be repeated."),
];

fn port(value: &Value) -> Result<(), String> {
    checks::between(value, 0, 65535)
}
