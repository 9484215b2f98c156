//! The tunnel through an HTTP proxy.

use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ProxyFault, port_of};

/// The longest head of a response that is read.
const LONGEST_HEAD: usize = 8 << 10;

/// Asks the proxy for a connection to the host and the port of `destination`, and returns the connection as the proxy
/// hands it over.
pub(super) async fn connect<S: Read + Write + Unpin>(
    route: S,
    destination: &Uri,
    authorization: Option<&HeaderValue>,
) -> Result<S, ProxyFault> {
    let mut route = TokioIo::new(route);
    let request = request(destination, authorization);
    route.write_all(&request).await.map_err(ProxyFault::Broken)?;
    route.flush().await.map_err(ProxyFault::Broken)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // One byte at a time, so that nothing is read of what comes behind the head. Reads are buffered beneath.
        head.push(route.read_u8().await.map_err(ProxyFault::Broken)?);
        if head.len() > LONGEST_HEAD {
            return Err(ProxyFault::NotHttp);
        }
    }
    let head = String::from_utf8_lossy(&head);
    match status(&head) {
        Some(("200", _)) => Ok(route.into_inner()),
        Some(("407", _)) => Err(ProxyFault::Unauthorized),
        Some((code, reason)) => Err(ProxyFault::Refused(format!("{code} {reason}").trim_end().to_owned())),
        None => Err(ProxyFault::NotHttp),
    }
}

fn request(destination: &Uri, authorization: Option<&HeaderValue>) -> Vec<u8> {
    let (host, port) = (destination.host().unwrap_or_default(), port_of(destination));
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(authorization) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

/// Code and reason of a status line.
fn status(head: &str) -> Option<(&str, &str)> {
    let (version, status) = head.lines().next()?.split_once(' ')?;
    let (code, reason) = status.split_once(' ').unwrap_or((status, ""));
    let is_http = version.starts_with("HTTP/1.") && code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    is_http.then_some((code, reason))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    async fn answered(answer: &str) -> (Result<DuplexStream, ProxyFault>, String) {
        let (near, mut far) = duplex(16 << 10);
        let destination = "https://api.example:6443/version".parse().unwrap();
        far.write_all(answer.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        let connected = connect(TokioIo::new(near), &destination, None).await.map(TokioIo::into_inner);
        let mut asked = vec![0; 1024];
        let length = far.read(&mut asked).await.unwrap();
        (connected, String::from_utf8_lossy(&asked[..length]).into_owned())
    }

    #[tokio::test]
    async fn the_connection_is_handed_over_behind_the_head_of_the_answer() {
        let (connected, asked) = answered("HTTP/1.1 200 Connection established\r\nVia: 1.1 p\r\n\r\nfirst bytes").await;
        assert_eq!(asked, "CONNECT api.example:6443 HTTP/1.1\r\nHost: api.example:6443\r\n\r\n");
        let mut rest = String::new();
        connected.unwrap().read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "first bytes");
    }

    #[tokio::test]
    async fn an_answer_that_makes_no_connection_is_named() {
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "x".repeat(LONGEST_HEAD));
        for (answer, fault) in [
            ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ProxyFault::Unauthorized.to_string()),
            ("HTTP/1.0 403 Forbidden\r\n\r\n", "refuses to connect to the API server (403 Forbidden)".to_owned()),
            ("HTTP/1.1 502\r\n\r\n", "refuses to connect to the API server (502)".to_owned()),
            ("SSH-2.0-OpenSSH\r\n\r\n", ProxyFault::NotHttp.to_string()),
            (endless.as_str(), ProxyFault::NotHttp.to_string()),
            ("HTTP/1.1 200 OK\r\n", "ended the connection without an answer".to_owned()),
        ] {
            let (connected, _) = answered(answer).await;
            assert_eq!(connected.map(drop).unwrap_err().to_string(), fault, "{answer:.60}");
        }
    }

    #[test]
    fn ports_are_those_of_the_scheme() {
        for (destination, first) in [
            ("https://api.example", "CONNECT api.example:443 HTTP/1.1"),
            ("http://api.example", "CONNECT api.example:80 HTTP/1.1"),
            ("https://[fd00::1]:6443", "CONNECT [fd00::1]:6443 HTTP/1.1"),
        ] {
            let request = request(&destination.parse().unwrap(), None);
            assert!(request.starts_with(first.as_bytes()), "{destination}");
        }
        let header = HeaderValue::from_static("Basic dTpw");
        let request = request(&"https://api.example".parse().unwrap(), Some(&header));
        assert!(request.ends_with(b"\r\nProxy-Authorization: Basic dTpw\r\n\r\n"));
    }
}
