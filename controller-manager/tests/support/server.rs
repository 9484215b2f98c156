//! API servers on the loopback interface.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kcm_sandbox_apiserver::{ResponseBody, Sandbox};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// A sandbox behind a socket, which closes when this is dropped.
pub struct Server {
    pub sandbox: Sandbox,
    /// Its address, as `server` in a kubeconfig.
    pub address: String,
    /// All requests that came over this socket, the method before the path.
    requests: Arc<Mutex<Vec<String>>>,
    /// Path of the requests that are held back.
    held: watch::Sender<Option<&'static str>>,
    _tasks: JoinSet<()>,
}

/// A response in place of the sandbox's, for a path.
pub type Instead = fn(&str) -> Option<(u16, &'static str)>;

impl Server {
    /// Serves a sandbox over plain HTTP.
    pub async fn start(sandbox: Sandbox) -> Self {
        Self::start_with(sandbox, |_| None).await
    }

    /// Serves a sandbox over plain HTTP, except for the responses of `instead`.
    pub async fn start_with(sandbox: Sandbox, instead: Instead) -> Self {
        let (listener, address) = listen().await;
        let mut tasks = JoinSet::new();
        let (requests, held) = <(Arc<Mutex<Vec<String>>>, watch::Sender<_>)>::default();
        let served =
            Served { sandbox: sandbox.clone(), instead, requests: Arc::clone(&requests), held: held.subscribe() };
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(served.clone().serve(stream));
            }
        });
        Self { sandbox, address: format!("http://{address}"), requests, held, _tasks: tasks }
    }

    /// All requests so far, the method before the path.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panics with it").clone()
    }

    /// Answers no request for `path` until [`release`](Self::release).
    pub fn hold(&self, path: &'static str) {
        self.held.send_replace(Some(path));
    }

    /// Serves all requests from now on.
    pub fn release(&self) {
        self.held.send_replace(None);
    }

    /// Serves a sandbox over TLS, with a certificate of an unknown CA.
    pub async fn start_with_certificate_of_a_stranger(sandbox: Sandbox) -> Self {
        let (listener, address) = listen().await;
        let mut tasks = JoinSet::new();
        let acceptor = strange_acceptor();
        let (requests, held) = <(Arc<Mutex<Vec<String>>>, watch::Sender<_>)>::default();
        let (sandbox_of, seen) = (sandbox.clone(), Arc::clone(&requests));
        let served = Served { sandbox: sandbox_of, instead: |_| None, requests: seen, held: held.subscribe() };
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    served.clone().serve(stream).await;
                }
            }
        });
        Self { sandbox, address: format!("https://{address}"), requests, held, _tasks: tasks }
    }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port must be free");
    let address = listener.local_addr().expect("it is bound").to_string();
    (listener, address)
}

/// The servers behind each connection.
#[derive(Clone)]
struct Served {
    sandbox: Sandbox,
    instead: Instead,
    requests: Arc<Mutex<Vec<String>>>,
    held: watch::Receiver<Option<&'static str>>,
}

impl Served {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let service = service_fn(|request: Request<Incoming>| {
            let (service, instead, mut held) = (self.sandbox.service(), self.instead, self.held.clone());
            let path = request.uri().path().to_owned();
            self.requests.lock().expect("no test panics with it").push(format!("{} {path}", request.method()));
            async move {
                // The test has ended if the sender is dropped.
                drop(held.wait_for(|held| *held != Some(&*path)).await);
                match instead(&path) {
                    Some((code, text)) => Ok(Response::builder()
                        .status(code)
                        .body(ResponseBody::new(text.to_owned().map_err(|never| match never {})))
                        .expect("the code is one")),
                    None => service.oneshot(request).await,
                }
            }
        });
        // A client that has disconnected is no failure.
        drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
    }
}

fn strange_acceptor() -> TlsAcceptor {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("a certificate");
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address is a name");
    let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the usual versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("the key is that of the certificate");
    TlsAcceptor::from(Arc::new(config))
}
