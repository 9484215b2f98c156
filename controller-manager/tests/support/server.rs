//! API servers on the loopback interface.

use std::sync::Arc;

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
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// A sandbox behind a socket; it is gone when this is dropped.
pub struct Server {
    pub sandbox: Sandbox,
    /// Its address, as `server` in a kubeconfig.
    pub address: String,
    _tasks: JoinSet<()>,
}

/// An answer that the sandbox does not give, for a path.
pub type Instead = fn(&str) -> Option<(u16, &'static str)>;

impl Server {
    /// Serves a sandbox over plain HTTP.
    pub async fn start(sandbox: Sandbox) -> Self {
        Self::start_with(sandbox, |_| None).await
    }

    /// Serves a sandbox over plain HTTP, but for what `instead` answers.
    pub async fn start_with(sandbox: Sandbox, instead: Instead) -> Self {
        let (listener, address) = listen().await;
        let mut tasks = JoinSet::new();
        let served = sandbox.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(served.clone(), stream, instead));
            }
        });
        Self { sandbox, address: format!("http://{address}"), _tasks: tasks }
    }

    /// Serves a sandbox over TLS, with a certificate of an unknown authority.
    pub async fn start_with_certificate_of_a_stranger(sandbox: Sandbox) -> Self {
        let (listener, address) = listen().await;
        let mut tasks = JoinSet::new();
        let (served, acceptor) = (sandbox.clone(), strange_acceptor());
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(served.clone(), stream, |_| None).await;
                }
            }
        });
        Self { sandbox, address: format!("https://{address}"), _tasks: tasks }
    }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port must be free");
    let address = listener.local_addr().expect("it is bound").to_string();
    (listener, address)
}

async fn serve(sandbox: Sandbox, stream: impl AsyncRead + AsyncWrite + Unpin, instead: Instead) {
    let service = service_fn(|request: Request<Incoming>| {
        let service = sandbox.service();
        async move {
            match instead(request.uri().path()) {
                Some((code, text)) => Ok(Response::builder()
                    .status(code)
                    .body(ResponseBody::new(text.to_owned().map_err(|never| match never {})))
                    .expect("the code is one")),
                None => service.oneshot(request).await,
            }
        }
    });
    // A client that is gone is no failure.
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
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
