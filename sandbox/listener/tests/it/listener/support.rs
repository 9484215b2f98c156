use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use kcm_sandbox_apiserver::Sandbox;
use kcm_sandbox_listener::{ListenOptions, Listener};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A sandbox that is served, and the tasks of its clients.
pub(crate) struct Served {
    pub(crate) sandbox: Sandbox,
    pub(crate) address: SocketAddr,
    pub(crate) kubeconfig: String,
    token: String,
    authority: CertificateDer<'static>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinSet<()>,
    clients: Tasks,
    clock: Option<mpsc::Sender<()>>,
}

#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.lock().spawn(task);
    }
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) text: String,
}

impl Answer {
    /// The `Status` that it must be, by code and reason.
    pub(crate) fn reason(&self) -> String {
        let status: Value = serde_json::from_str(&self.text).expect("the answer is JSON");
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], self.code, "{status}");
        status["reason"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) enum Http {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

pub(crate) async fn served() -> Served {
    served_with(ListenOptions::default()).await
}

pub(crate) async fn served_with(options: ListenOptions) -> Served {
    let sandbox = Sandbox::default();
    let listener = Listener::bind(&sandbox, options).await.expect("the loopback interface has a free port");
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, kubeconfig) = (listener.address(), listener.kubeconfig());
    let read = kube::config::Kubeconfig::from_yaml(&kubeconfig).expect("it is a kubeconfig");
    let read = serde_json::to_value(read).expect("it is data");
    let authority = read["clusters"][0]["cluster"]["certificate-authority-data"].clone();
    let authority: ByteString = serde_json::from_value(authority).expect("it is base64");
    let mut server = JoinSet::new();
    server.spawn(listener.serve(async { drop(stopped.await) }));
    Served {
        sandbox,
        address,
        kubeconfig,
        token: read["users"][0]["user"]["token"].as_str().expect("there is a token").to_owned(),
        authority: CertificateDer::from_pem_slice(&authority.0).expect("it is a certificate"),
        stop: Some(stop),
        server,
        clients: Tasks::default(),
        clock: Some(held_clock()),
    }
}

/// Keeps the paused clock from running ahead until what is returned is dropped: tokio waits for blocking tasks.
///
/// A connection is idle for the runtime whenever bytes are on their way; without this the clock would jump to the
/// deadline then, on a slow machine more often than on a fast one.
fn held_clock() -> mpsc::Sender<()> {
    let (held, release) = mpsc::channel::<()>();
    // It ends with the sender, and nobody waits for it.
    drop(tokio::task::spawn_blocking(move || release.recv()));
    held
}

impl Served {
    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }

    /// A TLS connection as `name`, that would speak one protocol.
    pub(crate) async fn tls(&self, name: &'static str, protocol: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("the authority is one");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the usual versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from(name).expect("it is a name");
        TlsConnector::from(Arc::new(config)).connect(name, self.tcp().await).await
    }

    pub(crate) async fn raw(&self) -> TlsStream<TcpStream> {
        self.tls("localhost", b"http/1.1").await.expect("the certificate is trusted")
    }

    pub(crate) async fn http1(&self) -> Http {
        let (sender, connection) =
            http1::handshake(TokioIo::new(self.raw().await)).await.expect("the connection is new");
        self.clients.execute(async { drop(connection.await) });
        Http::One(sender)
    }

    pub(crate) async fn http2(&self) -> Http {
        let tls = self.tls("127.0.0.1", b"h2").await.expect("the certificate is trusted");
        let (sender, connection) = http2::Builder::new(self.clients.clone())
            .max_header_list_size(1 << 20)
            .handshake(TokioIo::new(tls))
            .await
            .expect("the connection is new");
        self.clients.execute(async { drop(connection.await) });
        Http::Two(sender)
    }

    pub(crate) async fn both(&self) -> [Http; 2] {
        [self.http1().await, self.http2().await]
    }

    /// A request with the token.
    pub(crate) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
    }

    /// The first lines of a request on a raw connection, without the empty line that ends it.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n", self.token)
    }

    /// Sends these bytes on a new connection, and returns the response up to the end of the connection.
    pub(crate) async fn said(&self, bytes: &[u8]) -> String {
        let mut stream = self.raw().await;
        stream.write_all(bytes).await.expect("it listens");
        read_to_end(&mut stream).await
    }

    /// Asserts that the API still serves a new client.
    pub(crate) async fn assert_serves(&self) {
        let answer = self.http2().await.get(self, "/api/v1/namespaces/default").await;
        assert_eq!(answer.code, 200, "{answer:?}");
    }

    /// From here on the clock jumps to the next deadline whenever nothing else is to do.
    pub(crate) fn run_clock(&mut self) {
        self.clock = None;
    }

    /// From here on the clock stands still, as it did at the start.
    pub(crate) fn hold_clock(&mut self) {
        self.clock = Some(held_clock());
    }

    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the listener has ended.
    pub(crate) async fn ended(&mut self) {
        self.server.join_next().await.expect("it was started").expect("it must not panic");
    }

    pub(crate) fn create_config_map(&self, name: &str, text: &str) {
        let object = json!({ "metadata": { "name": name }, "data": { "text": text } });
        self.sandbox.create(&kcm_sandbox_apiserver::CONFIG_MAPS, object).expect("it is a new config map");
    }
}

impl Http {
    pub(crate) async fn try_send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<http::Response<Incoming>> {
        match self {
            Self::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        self.try_send(request).await.expect("the request is answered")
    }

    pub(crate) async fn ask(&mut self, request: Request<Full<Bytes>>) -> Answer {
        let (head, body) = self.send(request).await.into_parts();
        let body = body.collect().await.expect("the answer is whole").to_bytes();
        let text = String::from_utf8(body.to_vec()).expect("answers are text");
        Answer { code: head.status.as_u16(), text }
    }

    pub(crate) async fn get(&mut self, served: &Served, path: &str) -> Answer {
        self.ask(served.request("GET", path).body(Full::default()).expect("it is a request")).await
    }

    /// Opens a watch of config maps, and does not read it.
    pub(crate) async fn watch(&mut self, served: &Served) -> Incoming {
        let path = "/api/v1/namespaces/default/configmaps?watch=true";
        let request = served.request("GET", path).body(Full::default()).expect("it is a request");
        let response = self.send(request).await;
        assert_eq!(response.status(), 200);
        response.into_body()
    }
}

/// Everything up to the end of a connection, which may be abrupt.
pub(crate) async fn read_to_end(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A connection that is cut has no proper end.
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads up to and including these words, or to the end of the connection.
pub(crate) async fn read_until(stream: &mut (impl tokio::io::AsyncRead + Unpin), words: &str) -> String {
    let mut text = String::new();
    let mut bytes = [0; 1024];
    while !text.contains(words) {
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(length) => text.push_str(&String::from_utf8_lossy(&bytes[..length])),
        }
    }
    text
}
