//! Proxies: which one is used, and the tunnel through it.

mod environment;
mod socks;
mod tunnel;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use percent_encoding::percent_decode_str;

use crate::error::BoxError;

pub(crate) use environment::Environment;

/// A proxy that makes connections to the API server: an HTTP proxy by `CONNECT`, or a SOCKS5 proxy.
///
/// # Upstream
/// client-go does the same for `https` servers. To a server without TLS it sends its requests through an HTTP proxy without
/// a tunnel; here they have one too. `socks5h`, which client-go takes from the environment alone, is taken from
/// `proxy-url` too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    /// Scheme, host and port.
    address: Uri,
    protocol: Protocol,
}

/// The protocol of the requests to a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Protocol {
    /// By `CONNECT`, with the header `Proxy-Authorization`.
    Http(Option<HeaderValue>),
    Socks(Option<socks::Credentials>),
}

/// An address of a proxy that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProxyAddressError {
    /// Not a URL with a host.
    #[error("it is not an address such as http://proxy.example:3128")]
    Malformed,
    /// A protocol that is not spoken.
    #[error("the protocol {0} is not supported: give an http, https or socks5 proxy")]
    Protocol(String),
    /// User or password that SOCKS5 cannot carry.
    #[error("a SOCKS5 proxy takes a user and a password of at most 255 bytes each, and no empty user")]
    Credentials,
}

/// A connection through a proxy that was not made.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy}")]
pub(crate) struct ProxyError {
    pub(crate) proxy: Uri,
    #[source]
    pub(crate) fault: ProxyFault,
}

/// The reason why a proxy makes no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyFault {
    /// It cannot be connected to.
    #[error("cannot be reached")]
    Unreachable(#[source] BoxError),
    /// It wants other credentials.
    #[error("does not know our credentials (407): put them into its address, as in http://USER:PASSWORD@HOST:PORT")]
    Unauthorized,
    /// It wants other credentials, as SOCKS5 says it.
    #[error("does not accept our credentials: put them into its address, as in socks5://USER:PASSWORD@HOST:PORT")]
    SocksUnauthorized,
    /// It refuses to connect to the API server.
    #[error("refuses to connect to the API server ({0})")]
    Refused(String),
    /// The connection broke before its response.
    #[error("ended the connection without an answer")]
    Broken(#[source] std::io::Error),
    /// Its response is not HTTP.
    #[error("does not answer as an HTTP proxy")]
    NotHttp,
    /// Its response is not SOCKS5.
    #[error("does not answer as a SOCKS5 proxy")]
    NotSocks,
}

impl Proxy {
    /// A proxy by its URL, or by host and port alone.
    pub(crate) fn parse(url: &str) -> Result<Self, ProxyAddressError> {
        let uri = match url.parse::<Uri>() {
            Ok(uri) if uri.scheme().is_some() && uri.host().is_some() => uri,
            Ok(_) | Err(_) if !url.contains("://") => {
                format!("http://{url}").parse().map_err(|_| ProxyAddressError::Malformed)?
            }
            Ok(_) | Err(_) => return Err(ProxyAddressError::Malformed),
        };
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(ProxyAddressError::Malformed);
        };
        let (default_port, protocol) = match scheme.as_str() {
            "http" => (80, Protocol::Http(authorization(authority))),
            "https" => (443, Protocol::Http(authorization(authority))),
            "socks5" | "socks5h" => {
                let credentials = socks::Credentials::of(authority).map_err(|_| ProxyAddressError::Credentials)?;
                (1080, Protocol::Socks(credentials))
            }
            other => return Err(ProxyAddressError::Protocol(other.to_owned())),
        };
        let address = address(scheme, authority, default_port).ok_or(ProxyAddressError::Malformed)?;
        Ok(Self { address, protocol })
    }

    /// The URI to connect to: `https` if the proxy speaks TLS itself, else `http`.
    pub(crate) fn endpoint(&self) -> Uri {
        let mut endpoint = self.address.clone().into_parts();
        if let Protocol::Socks(_) = self.protocol {
            endpoint.scheme = Some(Scheme::HTTP);
        }
        // Another scheme makes no address invalid.
        Uri::from_parts(endpoint).unwrap_or_else(|_| self.address.clone())
    }

    /// Returns the error for a proxy that cannot be connected to.
    pub(crate) fn unreachable(&self, error: BoxError) -> ProxyError {
        self.error(ProxyFault::Unreachable(error))
    }

    /// Asks the proxy at the other end of `route` for a connection to `destination`.
    pub(crate) async fn tunnel<S: Read + Write + Unpin>(&self, route: S, destination: &Uri) -> Result<S, ProxyError> {
        let tunnelled = match &self.protocol {
            Protocol::Http(authorization) => tunnel::connect(route, destination, authorization.as_ref()).await,
            Protocol::Socks(credentials) => socks::connect(route, destination, credentials.as_ref()).await,
        };
        tunnelled.map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: ProxyFault) -> ProxyError {
        ProxyError { proxy: self.address.clone(), fault }
    }
}

/// The port of the API server at that address.
fn port_of(destination: &Uri) -> u16 {
    let default_port = if destination.scheme_str() == Some("http") { 80 } else { 443 };
    destination.port_u16().unwrap_or(default_port)
}

fn address(scheme: &Scheme, authority: &Authority, default_port: u16) -> Option<Uri> {
    if authority.host().is_empty() {
        return None;
    }
    let port = authority.port_u16().unwrap_or(default_port);
    let authority = format!("{}:{port}", authority.host());
    Uri::builder().scheme(scheme.clone()).authority(authority).path_and_query("/").build().ok()
}

/// The header for user and password of an address, which are percent-encoded there.
fn authorization(authority: &Authority) -> Option<HeaderValue> {
    let (user_info, _) = authority.as_str().rsplit_once('@')?;
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let mut credentials: Vec<u8> = percent_decode_str(user).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(password));
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<(String, Option<String>), ProxyAddressError> {
        let proxy = Proxy::parse(url)?;
        let authorization = match proxy.protocol {
            Protocol::Http(header) => header.map(|header| header.to_str().unwrap().to_owned()),
            Protocol::Socks(credentials) => credentials.map(|_| "SOCKS".to_owned()),
        };
        Ok((proxy.address.to_string(), authorization))
    }

    #[test]
    fn an_address_has_scheme_port_and_credentials() {
        for (url, address, authorization) in [
            ("http://proxy.example:3128", "http://proxy.example:3128/", None),
            ("proxy.example:3128", "http://proxy.example:3128/", None),
            ("proxy.example", "http://proxy.example:80/", None),
            ("10.0.0.1:3128", "http://10.0.0.1:3128/", None),
            ("http://[fd00::1]:3128/path", "http://[fd00::1]:3128/", None),
            ("https://proxy.example", "https://proxy.example:443/", None),
            // base64 of `user:secret`, `user:` and `us@er:p:w`.
            ("http://user:secret@proxy.example", "http://proxy.example:80/", Some("Basic dXNlcjpzZWNyZXQ=")),
            ("http://user@proxy.example", "http://proxy.example:80/", Some("Basic dXNlcjo=")),
            ("http://us%40er:p:w@proxy.example", "http://proxy.example:80/", Some("Basic dXNAZXI6cDp3")),
            ("socks5://proxy.example", "socks5://proxy.example:1080/", None),
            ("socks5h://user:secret@[::1]:9", "socks5h://[::1]:9/", Some("SOCKS")),
        ] {
            let expected = (address.to_owned(), authorization.map(str::to_owned));
            assert_eq!(parsed(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        assert_eq!(parsed("http://"), Err(ProxyAddressError::Malformed));
        assert_eq!(parsed("not a proxy"), Err(ProxyAddressError::Malformed));
        assert_eq!(parsed("socks4://proxy.example"), Err(ProxyAddressError::Protocol("socks4".to_owned())));
        assert_eq!(parsed("socks5://:password@proxy.example"), Err(ProxyAddressError::Credentials));
    }

    #[test]
    fn credentials_are_never_printed() {
        for scheme in ["http", "socks5"] {
            let proxy = Proxy::parse(&format!("{scheme}://user:secret@proxy.example")).unwrap();
            let printed = format!("{proxy:?} {}", proxy.error(ProxyFault::Unauthorized));
            assert!(!printed.contains("secret") && !printed.contains("dXNlcjpzZWNyZXQ"), "{printed}");
        }
    }

    #[test]
    fn a_socks_proxy_is_connected_to_without_tls() {
        for (url, endpoint) in [
            ("socks5h://user:secret@proxy.example", "http://proxy.example:1080/"),
            ("https://proxy.example", "https://proxy.example:443/"),
            ("http://proxy.example", "http://proxy.example:80/"),
        ] {
            assert_eq!(Proxy::parse(url).unwrap().endpoint().to_string(), endpoint);
        }
    }
}
