//! Parameters of TLS: versions, cipher suites and groups of the key exchange, by upstream's names.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
const ONLY_TLS13: &[&SupportedProtocolVersion] = &[&TLS13];

/// Versions, cipher suites and groups of TLS.
#[derive(Debug, Clone)]
pub(crate) struct TlsParameters {
    provider: Arc<CryptoProvider>,
    versions: &'static [&'static SupportedProtocolVersion],
}

impl TlsParameters {
    /// Reads the values of `--tls-cipher-suites`, `--tls-curve-preferences` and `--tls-min-version`. An empty value
    /// means the default. The suites select suites of TLS 1.2 only, and the order of the curves does not count, as
    /// upstream.
    ///
    /// # Errors
    /// Each flag with a value that is not supported, with the reason.
    pub(crate) fn new(
        suites: &[String],
        curves: &[i32],
        min_version: &str,
    ) -> Result<Self, Vec<(&'static str, String)>> {
        let mut provider = aws_lc_rs::default_provider();
        let mut unsupported = Vec::new();
        if !suites.is_empty() {
            let all = aws_lc_rs::ALL_CIPHER_SUITES;
            for name in suites.iter().filter(|name| !all.iter().any(|suite| is_named(suite, name))) {
                let known: Vec<String> = all.iter().map(iana_name).collect();
                unsupported.push((
                    "tls-cipher-suites",
                    format!(
                        "the cipher suite {name} is not supported because it is not secure enough: leave it out, or choose one of {}",
                        known.join(", ")
                    ),
                ));
            }
            provider
                .cipher_suites
                .retain(|suite| suite.tls13().is_some() || suites.iter().any(|name| is_named(suite, name)));
        }
        if !curves.is_empty() {
            let all = aws_lc_rs::ALL_KX_GROUPS;
            for curve in curves.iter().filter(|curve| !all.iter().any(|group| number(*group) == **curve)) {
                let known: Vec<String> = all.iter().map(|group| number(*group).to_string()).collect();
                unsupported.push((
                    "tls-curve-preferences",
                    format!("the group {curve} is not supported: leave it out, or choose one of {}", known.join(", ")),
                ));
            }
            provider.kx_groups = all.iter().copied().filter(|group| curves.contains(&number(*group))).collect();
        }
        if let Some(version @ ("VersionTLS10" | "VersionTLS11")) = Some(min_version) {
            unsupported.push((
                "tls-min-version",
                format!("{version} is not secure and not supported: give VersionTLS12 or VersionTLS13"),
            ));
        }
        if !unsupported.is_empty() {
            return Err(unsupported);
        }
        let has_tls12 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
        let versions = if min_version == "VersionTLS13" || !has_tls12 { ONLY_TLS13 } else { BOTH };
        Ok(Self { provider: Arc::new(provider), versions })
    }

    pub(super) const fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }

    pub(super) const fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        self.versions
    }
}

fn number(group: &dyn SupportedKxGroup) -> i32 {
    i32::from(u16::from(group.name()))
}

/// The name of a suite in the registry of IANA, which rustls abbreviates for TLS 1.3.
fn iana_name(suite: &SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.strip_prefix("TLS13_").map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}

/// Returns `true` if `name` is the name of a suite. Go has shorter names for `ChaCha20` too.
fn is_named(suite: &SupportedCipherSuite, name: &str) -> bool {
    let full = iana_name(suite);
    full == name || (name.ends_with("_CHACHA20_POLY1305") && full.strip_suffix("_SHA256") == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(suites: &[&str], curves: &[i32], version: &str) -> Result<TlsParameters, Vec<&'static str>> {
        let suites: Vec<String> = suites.iter().map(ToString::to_string).collect();
        let made = TlsParameters::new(&suites, curves, version);
        made.map_err(|unsupported| unsupported.into_iter().map(|(flag, _)| flag).collect())
    }

    #[test]
    fn suites_choose_among_those_of_tls_1_2() {
        let chosen =
            parameters(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"], &[], "")
                .expect("they are supported");
        let names: Vec<String> = chosen.provider.cipher_suites.iter().map(iana_name).collect();
        assert_eq!(
            names,
            [
                "TLS_AES_256_GCM_SHA384",
                "TLS_AES_128_GCM_SHA256",
                "TLS_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            ]
        );
        assert_eq!(chosen.versions.len(), 2);
        let newest = parameters(&["TLS_AES_128_GCM_SHA256"], &[], "").expect("it is supported");
        assert_eq!(newest.versions.len(), 1, "no suite of TLS 1.2 is left");
    }

    #[test]
    fn groups_are_chosen_by_their_numbers() {
        let chosen = parameters(&[], &[4588, 23], "VersionTLS13").expect("they are supported");
        let mut numbers: Vec<i32> = chosen.provider.kx_groups.iter().map(|group| number(*group)).collect();
        numbers.sort_unstable();
        assert_eq!((numbers, chosen.versions.len()), (vec![23, 4588], 1));
    }

    #[test]
    fn what_is_not_supported_is_refused_by_its_flag() {
        type Case = (&'static [&'static str], &'static [i32], &'static str, &'static [&'static str]);
        let cases: [Case; 4] = [
            (&["TLS_RSA_WITH_AES_128_CBC_SHA"], &[], "", &["tls-cipher-suites"]),
            (&[], &[25], "", &["tls-curve-preferences"]),
            (&[], &[], "VersionTLS11", &["tls-min-version"]),
            (
                &["TLS_RSA_WITH_RC4_128_SHA", "TLS_AES_128_GCM_SHA256"],
                &[25, 4589],
                "VersionTLS10",
                &["tls-cipher-suites", "tls-curve-preferences", "tls-curve-preferences", "tls-min-version"],
            ),
        ];
        for (suites, curves, version, flags) in cases {
            assert_eq!(parameters(suites, curves, version).err().as_deref(), Some(flags), "{suites:?}");
        }
    }
}
