//! Requests and watches through a proxy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use http_body_util::BodyExt;
use kcm_client::{ClientBuilder, Limits, Unreachable, UserAgent, connect, wait_for_api_server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::connections::server::{Authority, Server, watch, who};

/// A proxy that serves `CONNECT` with these credentials.
struct Proxy {
    address: String,
    /// The heads of all requests.
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    async fn start(authorization: Option<&'static str>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heads = Arc::clone(&asked);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (heads, tls) = (Arc::clone(&heads), tls.clone());
                serving.spawn(async move {
                    match tls {
                        Some(tls) => serve(tls.accept(stream).await.unwrap(), authorization, &heads).await,
                        None => serve(stream, authorization, &heads).await,
                    }
                });
            }
        });
        Self { address, asked, _tasks: tasks }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    authorization: Option<&'static str>,
    heads: &Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(head.clone());
    let is_authorized = authorization.is_none_or(|header| head.contains(&format!("Proxy-Authorization: {header}\r\n")));
    if !is_authorized {
        client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await.unwrap();
        return;
    }
    let target = head.split(' ').nth(1).unwrap();
    let mut server = TcpStream::connect(target).await.unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    drop(copy_bidirectional(&mut client, &mut server).await);
}

#[tokio::test]
async fn requests_and_watches_go_through_the_proxy() {
    let authority = Authority::new();
    let (server, proxy) = (Server::start(&authority).await, Proxy::start(None, None).await);
    let mut config = server.config.clone();
    config.proxy_url = Some(format!("http://{}", proxy.address).parse().unwrap());
    let client = connect(&config).unwrap();
    assert_eq!(who(&client).await, "0 none");
    let mut open = watch(&client).await;
    assert!(open.frame().now_or_never().is_none(), "the watch stays open");
    assert_eq!(who(&client).await, "0 none");
    let target = config.cluster_url.authority().unwrap();
    assert_eq!(proxy.asked(), vec![format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"); 2]);
    assert_eq!(server.connections(), 2, "one for requests, one for watches");
}

#[tokio::test]
async fn the_credentials_of_the_address_are_sent_to_the_proxy_alone() {
    let authority = Authority::new();
    let (server, proxy) = (Server::start(&authority).await, Proxy::start(Some("Basic dXNlcjpzZWNyZXQ="), None).await);
    let mut config = server.config.clone();
    config.proxy_url = Some(format!("http://user:secret@{}", proxy.address).parse().unwrap());
    assert_eq!(who(&connect(&config).unwrap()).await, "0 none");
}

#[tokio::test]
async fn a_proxy_may_speak_tls_itself() {
    let authority = Authority::new();
    let proxy = Proxy::start(None, Some(authority.acceptor("http/1.1"))).await;
    let server = Server::start(&authority).await;
    let mut config = server.config.clone();
    config.proxy_url = Some(format!("https://{}", proxy.address).parse().unwrap());
    assert_eq!(who(&connect(&config).unwrap()).await, "0 none");
    assert_eq!(proxy.asked().len(), 1);
}

async fn probe(config: &kube::Config) -> String {
    let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
    let api = ClientBuilder::new(connect(config).unwrap(), agent, Limits::UNLIMITED).client_for("probe");
    let error = wait_for_api_server(&api, "https://api.example", Duration::from_millis(900)).await.unwrap_err();
    assert!(matches!(error, Unreachable::Proxy { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_proxy_that_makes_no_connection_is_named_and_not_the_api_server() {
    let authority = Authority::new();
    let (server, proxy) = (Server::start(&authority).await, Proxy::start(Some("Basic dTpw"), None).await);
    let mut config = server.config.clone();
    let url = format!("http://{}/", proxy.address);
    config.proxy_url = Some(url.parse().unwrap());
    assert_eq!(
        probe(&config).await,
        format!(
            "the API server https://api.example cannot be reached through a proxy: the proxy {url}: \
             does not know our credentials (407): put them into its address, as in http://USER:PASSWORD@HOST:PORT"
        )
    );
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    config.proxy_url = Some(format!("http://{nobody}/").parse().unwrap());
    let sentence = probe(&config).await;
    let begins = format!(
        "the API server https://api.example cannot be reached through a proxy: the proxy http://{nobody}/: cannot be reached: "
    );
    assert!(sentence.starts_with(&begins) && sentence.contains("Connection refused"), "{sentence}");
    assert_eq!(server.connections(), 0);
}
