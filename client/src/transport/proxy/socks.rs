//! The handshake with a SOCKS5 proxy (RFC 1928), with user and password if the address has them (RFC 1929).

use std::net::IpAddr;

use http::Uri;
use http::uri::Authority;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ProxyFault, port_of};

const VERSION: u8 = 5;
/// The version of the negotiation of user and password.
const PASSWORD_VERSION: u8 = 1;

const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// User and password for a SOCKS5 proxy, each of at most 255 bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    user: Vec<u8>,
    password: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Returns the credentials in an address, which are percent-encoded; `Ok(None)` if there are none.
    ///
    /// # Errors
    /// If the user is empty, or either is longer than the protocol can carry.
    pub(super) fn of(authority: &Authority) -> Result<Option<Self>, CredentialsTooLong> {
        let Some((user_info, _)) = authority.as_str().rsplit_once('@') else { return Ok(None) };
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let [user, password] = [user, password].map(|part| percent_decode_str(part).collect::<Vec<u8>>());
        let fits = !user.is_empty() && byte(user.len()).is_some() && byte(password.len()).is_some();
        if fits { Ok(Some(Self { user, password })) } else { Err(CredentialsTooLong) }
    }
}

/// Credentials that SOCKS5 cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CredentialsTooLong;

/// Asks the proxy for a connection to the host and the port of `destination`, and returns the connection as the proxy
/// hands it over. The proxy resolves the name of the host.
///
/// # Upstream
/// Go's `net/http`, which treats `socks5` and `socks5h` alike: with credentials it offers both methods, and the proxy
/// chooses.
pub(super) async fn connect<S: Read + Write + Unpin>(
    route: S,
    destination: &Uri,
    credentials: Option<&Credentials>,
) -> Result<S, ProxyFault> {
    let request = request(destination)?;
    let mut route = TokioIo::new(route);
    let methods: &[u8] = if credentials.is_some() { &[NO_AUTHENTICATION, PASSWORD] } else { &[NO_AUTHENTICATION] };
    send(&mut route, &[&[VERSION, u8::try_from(methods.len()).unwrap_or_default()], methods].concat()).await?;
    match (receive(&mut route).await?, credentials) {
        ([VERSION, NO_AUTHENTICATION], _) => {}
        ([VERSION, PASSWORD], Some(credentials)) => {
            send(&mut route, &login(credentials)).await?;
            let [_, status] = receive(&mut route).await?;
            if status != 0 {
                return Err(ProxyFault::SocksUnauthorized);
            }
        }
        ([VERSION, NO_METHOD], _) => return Err(ProxyFault::SocksUnauthorized),
        _ => return Err(ProxyFault::NotSocks),
    }
    send(&mut route, &request).await?;
    let [version, reply, _, kind] = receive(&mut route).await?;
    if version != VERSION {
        return Err(ProxyFault::NotSocks);
    }
    if reply != 0 {
        return Err(ProxyFault::Refused(reason(reply)));
    }
    // The address of the proxy's end of the connection, which nothing needs.
    match kind {
        IPV4 => receive::<4>(&mut route).await.map(drop)?,
        IPV6 => receive::<16>(&mut route).await.map(drop)?,
        NAME => {
            let [length] = receive(&mut route).await?;
            for _ in 0..length {
                receive::<1>(&mut route).await?;
            }
        }
        _ => return Err(ProxyFault::NotSocks),
    }
    receive::<2>(&mut route).await?;
    Ok(route.into_inner())
}

async fn send<S: Read + Write + Unpin>(route: &mut TokioIo<S>, message: &[u8]) -> Result<(), ProxyFault> {
    route.write_all(message).await.map_err(ProxyFault::Broken)?;
    route.flush().await.map_err(ProxyFault::Broken)
}

/// Reads so many bytes and none behind them.
async fn receive<const N: usize>(route: &mut TokioIo<impl Read + Write + Unpin>) -> Result<[u8; N], ProxyFault> {
    let mut message = [0; N];
    route.read_exact(&mut message).await.map_err(ProxyFault::Broken)?;
    Ok(message)
}

fn login(Credentials { user, password }: &Credentials) -> Vec<u8> {
    // Both fit, as `Credentials::of` has checked.
    let length = |part: &[u8]| byte(part.len()).unwrap_or_default();
    [&[PASSWORD_VERSION, length(user)], user.as_slice(), &[length(password)], password].concat()
}

fn request(destination: &Uri) -> Result<Vec<u8>, ProxyFault> {
    let host = destination.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let mut request = vec![VERSION, CONNECT, 0];
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
        Err(_) => {
            let too_long = || ProxyFault::Refused("the name of the host is longer than 255 bytes".to_owned());
            request.extend([NAME, byte(host.len()).ok_or_else(too_long)?]);
            request.extend(host.bytes());
        }
    }
    request.extend(port_of(destination).to_be_bytes());
    Ok(request)
}

fn byte(length: usize) -> Option<u8> {
    u8::try_from(length).ok()
}

/// Describes a reply other than success.
fn reason(reply: u8) -> String {
    let meaning = match reply {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        other => return format!("reply {other}"),
    };
    meaning.to_owned()
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    const SUCCESS: [u8; 10] = [5, 0, 0, 1, 127, 0, 0, 1, 0, 80];

    fn credentials(user_info: &str) -> Result<Option<Credentials>, CredentialsTooLong> {
        Credentials::of(&format!("{user_info}proxy.example").parse().unwrap())
    }

    /// Returns the outcome if the proxy sends `answers`, and the bytes that the proxy received.
    async fn answered(
        destination: &str,
        user_info: &str,
        answers: &[&[u8]],
    ) -> (Result<DuplexStream, ProxyFault>, Vec<u8>) {
        let (near, mut far) = duplex(16 << 10);
        far.write_all(&answers.concat()).await.unwrap();
        far.shutdown().await.unwrap();
        let credentials = credentials(user_info).unwrap();
        let connected = connect(TokioIo::new(near), &destination.parse().unwrap(), credentials.as_ref()).await;
        let mut asked = vec![0; 1024];
        let length = far.read(&mut asked).await.unwrap();
        asked.truncate(length);
        (connected.map(TokioIo::into_inner), asked)
    }

    #[tokio::test]
    async fn the_proxy_is_asked_for_the_host_by_name_or_address_and_the_port() {
        for (destination, address) in [
            ("https://api.example:6443", [&[3, 11][..], b"api.example", &[0x19, 0x2b]].concat()),
            ("https://api.example", [&[3, 11][..], b"api.example", &[1, 0xbb]].concat()),
            ("http://10.1.2.3", vec![1, 10, 1, 2, 3, 0, 80]),
            ("https://[::1]:6443", [&[4][..], &[0; 15], &[1, 0x19, 0x2b]].concat()),
        ] {
            let (connected, asked) = answered(destination, "", &[&[5, 0], &SUCCESS, b"first bytes"]).await;
            assert_eq!(asked, [&[5, 1, 0, 5, 1, 0][..], &address].concat(), "{destination}");
            let mut rest = String::new();
            connected.unwrap().read_to_string(&mut rest).await.unwrap();
            assert_eq!(rest, "first bytes", "{destination}");
        }
    }

    #[tokio::test]
    async fn user_and_password_are_sent_where_the_proxy_wants_them() {
        let (connected, asked) = answered("http://1.1.1.1", "u%40:pw@", &[&[5, 2], &[1, 0], &SUCCESS]).await;
        connected.unwrap();
        assert!(asked.starts_with(&[5, 2, 0, 2, 1, 2, b'u', b'@', 2, b'p', b'w', 5, 1, 0]), "{asked:?}");
        let (connected, asked) = answered("http://1.1.1.1", "u:pw@", &[&[5, 0], &SUCCESS]).await;
        connected.unwrap();
        assert_eq!(&asked[..7], [5, 2, 0, 2, 5, 1, 0]);
    }

    #[tokio::test]
    async fn an_answer_that_makes_no_connection_is_named() {
        let unauthorized = ProxyFault::SocksUnauthorized.to_string();
        let refused = |reason: &str| format!("refuses to connect to the API server ({reason})");
        let broken = "ended the connection without an answer".to_owned();
        let not_socks = ProxyFault::NotSocks.to_string();
        let cases: [(&str, &[&[u8]], String); 8] = [
            ("", &[&[5, 0xff]], unauthorized.clone()),
            ("u:p@", &[&[5, 2], &[1, 1]], unauthorized),
            ("", &[&[5, 0], &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]], refused("connection refused")),
            ("", &[&[5, 0], &[5, 99, 0, 1, 0, 0, 0, 0, 0, 0]], refused("reply 99")),
            ("", &[b"HTTP/1.1 400 Bad Request\r\n\r\n"], not_socks.clone()),
            ("", &[&[5, 2]], not_socks.clone()),
            ("", &[&[5, 0], &[5, 0, 0, 9]], not_socks),
            ("", &[&[5]], broken),
        ];
        for (user_info, answers, fault) in cases {
            let (connected, _) = answered("https://api.example", user_info, answers).await;
            assert_eq!(connected.map(drop).unwrap_err().to_string(), fault, "{answers:?}");
        }
        let long = format!("https://{}", "a.".repeat(200));
        let (connected, _) = answered(&long, "", &[]).await;
        assert_eq!(
            connected.map(drop).unwrap_err().to_string(),
            refused("the name of the host is longer than 255 bytes")
        );
    }

    #[test]
    fn credentials_fit_into_the_protocol_and_are_never_printed() {
        assert_eq!(credentials(""), Ok(None));
        assert_eq!(credentials(":p@"), Err(CredentialsTooLong));
        assert_eq!(credentials(&format!("{}@", "u".repeat(256))), Err(CredentialsTooLong));
        assert_eq!(credentials(&format!("u:{}@", "p".repeat(256))), Err(CredentialsTooLong));
        let held = credentials("user:secret@").unwrap();
        assert!(held.is_some() && !format!("{held:?}").contains("secret"));
    }
}
