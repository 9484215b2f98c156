//! The settings of the HTTPS port.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use kcm_config::{CertKey, Effective, FromValue, GoDuration, Origin};

use super::access::{AllowedPaths, AuthenticationOptions, AuthorizationOptions, HeaderNames};
use super::tls::{KeyPairSource, TlsParameters, TlsSettings};

/// The name of the pair in `--cert-dir`.
///
/// # Upstream
/// `PairName` in `cmd/kube-controller-manager/app/options`.
const PAIR_NAME: &str = "kube-controller-manager";

/// The settings of the HTTPS port.
#[derive(Debug, Clone)]
#[must_use]
pub struct ServingOptions {
    /// The address that is bound.
    pub(crate) address: SocketAddr,
    /// Whether several processes may share the address and the port.
    pub(crate) shares_port: bool,
    /// The streams that a client may have open on one HTTP/2 connection; HTTP/1.1 alone is served if absent.
    pub(crate) http2_streams: Option<u32>,
    /// Whether the status page is served.
    pub has_page: bool,
    /// Certificates and parameters of TLS.
    pub(crate) tls: TlsSettings,
    /// Ways to find the user of a request.
    pub(crate) authentication: AuthenticationOptions,
    /// Rules for the requests of a user.
    pub(crate) authorization: AuthorizationOptions,
}

/// Number of HTTP/2 streams of one connection, unless a flag says otherwise. A connection keeps 1 KB for each that a client
/// has opened.
const HTTP2_STREAMS: u32 = 16;

impl ServingOptions {
    /// Reads the options from `settings`. Returns `None` for `--secure-port=0`.
    ///
    /// # Errors
    /// Every reason why the port cannot be served as the settings say.
    pub fn of(settings: &Effective) -> Result<Option<Self>, Vec<String>> {
        let read = Read(settings);
        let Some(port) = u16::try_from(read.get::<i64>("secure-port").unwrap_or(0)).ok().filter(|port| *port > 0)
        else {
            return Ok(None);
        };
        let suites: Vec<String> = read.list("tls-cipher-suites");
        let curves: Vec<i32> = read.list("tls-curve-preferences");
        let min_version = read.text("tls-min-version");
        let parameters = TlsParameters::new(&suites, &curves, &min_version).map_err(|unsupported| {
            let reasons = unsupported.into_iter().map(|(flag, reason)| format!("{}: {reason}", read.origin(flag)));
            reasons.collect::<Vec<_>>()
        });
        let paths: Vec<String> = read.list("authorization-always-allow-paths");
        let always_allow = AllowedPaths::read(&paths).map_err(|wrong| {
            let origin = read.origin("authorization-always-allow-paths");
            let reasons = wrong.iter().map(|path| format!("{origin}: {path:?} may have a * at its end only"));
            reasons.collect::<Vec<_>>()
        });
        let (parameters, always_allow) = match (parameters, always_allow) {
            (Ok(parameters), Ok(always_allow)) => (parameters, always_allow),
            (parameters, always_allow) => {
                return Err([parameters.err(), always_allow.err()].into_iter().flatten().flatten().collect());
            }
        };
        let address: IpAddr = read.get("bind-address").unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let (cert, key, folder) =
            (read.text("tls-cert-file"), read.text("tls-private-key-file"), read.text("cert-dir"));
        let pair = if !cert.is_empty() {
            KeyPairSource::Files { cert: cert.into(), key: key.into() }
        } else if folder.is_empty() {
            KeyPairSource::InMemory
        } else {
            let folder = PathBuf::from(folder);
            KeyPairSource::Folder {
                cert: folder.join(format!("{PAIR_NAME}.crt")),
                key: folder.join(format!("{PAIR_NAME}.key")),
            }
        };
        let streams = read.get::<i64>("http2-max-streams-per-connection").unwrap_or(0);
        let streams = u32::try_from(streams).ok().filter(|streams| *streams > 0).unwrap_or(HTTP2_STREAMS);
        let http2 = !read.is_on("disable-http2-serving");
        Ok(Some(Self {
            address: SocketAddr::new(address, port),
            shares_port: read.is_on("permit-port-sharing"),
            http2_streams: http2.then_some(streams),
            has_page: read.is_on("debug-ui"),
            tls: TlsSettings { pair, by_name: read.list::<Vec<CertKey>>("tls-sni-cert-key"), parameters, http2 },
            authentication: read.authentication(),
            authorization: AuthorizationOptions {
                kubeconfig: read.path("authorization-kubeconfig"),
                always_allow,
                allowed_ttl: read.duration("authorization-webhook-cache-authorized-ttl"),
                denied_ttl: read.duration("authorization-webhook-cache-unauthorized-ttl"),
            },
        }))
    }

    /// Returns the options for a program that runs a manager itself and does not distinguish users. With default
    /// `settings` it listens on a free port of 127.0.0.1, serves the status page, and shows everything to every user.
    ///
    /// # Errors
    /// Every reason why the port cannot be served as the settings say.
    pub fn standalone(settings: &Effective) -> Result<Option<Self>, Vec<String>> {
        let is_default = |flag| settings.origin(flag).is_none_or(|origin| *origin == Origin::Default);
        let Some(mut options) = Self::of(settings)? else { return Ok(None) };
        if is_default("secure-port") {
            options.address.set_port(0);
        }
        if is_default("bind-address") {
            options.address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        if is_default("authorization-always-allow-paths") {
            options.authorization.always_allow = AllowedPaths::read(&["/*".to_owned()])?;
        }
        if is_default("authentication-skip-lookup") {
            options.authentication.skip_lookup = true;
        }
        if is_default("debug-ui") {
            options.has_page = true;
        }
        if is_default("disable-http2-serving") {
            // Over HTTP/2 a client without credentials gets one response on a connection, and the page's stream would
            // end.
            options.http2_streams = None;
            options.tls.http2 = false;
        }
        Ok(Some(options))
    }
}

struct Read<'a>(&'a Effective);

impl Read<'_> {
    fn authentication(&self) -> AuthenticationOptions {
        AuthenticationOptions {
            kubeconfig: self.path("authentication-kubeconfig"),
            client_ca: self.path("client-ca-file"),
            request_header_ca: self.path("requestheader-client-ca-file"),
            headers: HeaderNames {
                username: self.list("requestheader-username-headers"),
                uid: self.list("requestheader-uid-headers"),
                group: self.list("requestheader-group-headers"),
                extra_prefixes: self.list("requestheader-extra-headers-prefix"),
                allowed_names: self.list("requestheader-allowed-names"),
            },
            skip_lookup: self.is_on("authentication-skip-lookup"),
            tolerate_lookup_failure: self.is_on("authentication-tolerate-lookup-failure"),
            token_ttl: self.duration("authentication-token-webhook-cache-ttl"),
        }
    }

    fn path(&self, flag: &str) -> Option<PathBuf> {
        Some(self.text(flag)).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn duration(&self, flag: &str) -> Duration {
        self.get::<GoDuration>(flag).map(GoDuration::unsigned).unwrap_or_default()
    }

    fn get<T: FromValue>(&self, flag: &str) -> Option<T> {
        self.0.get(flag).ok()
    }

    fn is_on(&self, flag: &str) -> bool {
        self.get(flag).unwrap_or(false)
    }

    fn text(&self, flag: &str) -> String {
        self.get(flag).unwrap_or_default()
    }

    fn list<T: FromValue + Default>(&self, flag: &str) -> T {
        self.get(flag).unwrap_or_default()
    }

    fn origin(&self, flag: &str) -> String {
        match self.0.origin(flag) {
            Some(Origin::Default) | None => format!("--{flag}"),
            Some(origin) => origin.to_string(),
        }
    }
}
