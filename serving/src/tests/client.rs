//! A client that sends the requests of a test.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::any_certificate::AnyCertificate;

/// A response of HTTP/1.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A client of one port.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
}

impl Client {
    pub(crate) fn of(address: SocketAddr) -> Self {
        Self { address }
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the port is open")
    }

    /// A TLS connection that offers these protocols.
    pub(crate) async fn tls(&self, protocols: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate));
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("localhost").expect("it is a name");
        TlsConnector::from(Arc::new(config)).connect(name, self.tcp().await).await
    }

    /// Sends a request without a body on a connection of its own.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send_body(method, path, headers, "").await
    }

    pub(crate) async fn send_body(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        let mut stream = self.tls(&["http/1.1"]).await.expect("TLS is served");
        stream.write_all(request.as_bytes()).await.expect("it listens");
        let mut answer = Vec::new();
        // A server may close without saying so in TLS.
        drop(stream.read_to_end(&mut answer).await);
        let answer = String::from_utf8(answer).expect("answers are text");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer to {path}: {answer:?}"));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("it begins with a code");
        Answer { code, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[]).await
    }
}
