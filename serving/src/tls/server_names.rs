//! The certificate for a client, by the host name that it requests.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::names;

/// The certificates by host name, and the default.
///
/// # Upstream
/// `BuildNamedCertificates` in `apiserver/pkg/server/dynamiccertificates`: names that are given come before names that a
/// certificate has, and an earlier pair before a later one; an exact name comes before a wildcard.
#[derive(Debug, Clone)]
pub(super) struct ServerNames<C = Arc<CertifiedKey>> {
    default: C,
    /// For clients that ask for no name.
    without_name: C,
    by_name: BTreeMap<String, C>,
}

impl ServerNames {
    /// Maps names to the certificates of pairs. A pair without given names uses the names in its certificate.
    pub(super) fn new(default: Arc<CertifiedKey>, pairs: Vec<(Vec<String>, Arc<CertifiedKey>)>) -> Self {
        let pairs = pairs.into_iter().map(|(given, pair)| {
            let own = pair.cert.first().map(names_of).unwrap_or_default();
            (given, own, pair)
        });
        Self::of(default, &pairs.collect::<Vec<_>>())
    }
}

impl<C: Clone> ServerNames<C> {
    /// Maps names to pairs: the given names of each pair, or the names in its certificate if none are given.
    fn of(default: C, pairs: &[(Vec<String>, Vec<String>, C)]) -> Self {
        let mut by_name = BTreeMap::new();
        for (given, own, pair) in pairs.iter().rev() {
            if given.is_empty() {
                by_name.extend(own.iter().map(|name| (name.to_ascii_lowercase(), pair.clone())));
            }
        }
        for (given, _, pair) in pairs.iter().rev() {
            by_name.extend(given.iter().map(|name| (name.to_ascii_lowercase(), pair.clone())));
        }
        Self { without_name: default.clone(), default, by_name }
    }

    /// Returns the names that are IP addresses, each with the certificates for connections to it.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (IpAddr, Self)> {
        self.by_name.iter().filter_map(|(name, pair)| {
            let address: IpAddr = name.parse().ok()?;
            Some((address, Self { without_name: pair.clone(), ..self.clone() }))
        })
    }

    fn choose(&self, name: Option<&str>) -> &C {
        let Some(name) = name else { return &self.without_name };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let wildcard = name.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        let exact = self.by_name.get(&name);
        exact.or_else(|| self.by_name.get(&wildcard?)).unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for ServerNames {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(self.choose(hello.server_name())))
    }
}

/// The host names of a certificate: its common name if it is one, and its alternative names.
fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    let common = names::subject(parsed.subject()).map(|subject| subject.common_name).unwrap_or_default();
    let is_host = common == "*" || is_dns_name(common.strip_prefix("*.").unwrap_or(&common));
    let common = Some(common).filter(|name| is_host && name.parse::<IpAddr>().is_err());
    common.into_iter().chain(parsed.valid_dns_names().map(str::to_owned)).collect()
}

/// Returns `true` if `text` is a DNS name according to RFC 1123.
fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = label.bytes().next().is_some_and(inner) && label.bytes().last().is_some_and(inner);
        ends && label.bytes().all(|byte| inner(byte) || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_most_specific_name_chooses_the_certificate() {
        let names = ServerNames::of(
            "default",
            &[
                (strings(&[]), strings(&["a.example", "shared.example"]), "own"),
                (strings(&["*.example", "Given.example", "10.0.0.7"]), strings(&["unused.example"]), "given"),
                (strings(&["shared.example", "given.example"]), strings(&[]), "later"),
            ],
        );
        for (name, chosen) in [
            (None, "default"),
            (Some("a.example"), "own"),
            (Some("A.EXAMPLE."), "own"),
            (Some("b.example"), "given"),
            (Some("x.b.example"), "default"),
            (Some("example"), "default"),
            (Some("given.example"), "given"),
            (Some("shared.example"), "later"),
            (Some("unused.example"), "given"),
            (Some("other.test"), "default"),
        ] {
            assert_eq!(*names.choose(name), chosen, "{name:?}");
        }
        let addresses: Vec<_> = names.addresses().map(|(address, names)| (address, *names.choose(None))).collect();
        assert_eq!(addresses, [(IpAddr::from([10, 0, 0, 7]), "given")]);
    }

    #[test]
    fn common_names_that_are_no_hosts_do_not_count() {
        for (text, expected) in [
            ("a.example", true),
            ("a-1", true),
            ("A.example", false),
            ("-a", false),
            ("a..b", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(is_dns_name(text), expected, "{text:?}");
        }
    }
}
