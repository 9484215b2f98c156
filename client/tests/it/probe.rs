//! Errors about an API server that cannot be used, against real sockets on this machine.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::sync::Arc;
use std::time::Duration;

use kcm_client::{CertificateFault, ClientBuilder, Limits, Unreachable, UserAgent, connect, wait_for_api_server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

type Ca = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

struct Server {
    url: String,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Serves TLS with a certificate of `ca` for `name`, after `adjust`, and answers everything with `status`.
    async fn start(ca: &Ca, name: &str, adjust: impl FnOnce(&mut CertificateParams), status: &'static str) -> Self {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, ca).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream, status).await;
                }
            }
        });
        Self { url, _tasks: tasks }
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, status: &str) {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).await.unwrap_or_default();
    if read > 0 {
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
        drop(stream.write_all(response.as_bytes()).await);
        drop(stream.shutdown().await);
    }
}

async fn probe(url: &str, trusted: Option<&Ca>) -> Result<(), Unreachable> {
    let mut config = kube::Config::new(url.parse().unwrap());
    config.root_cert = trusted.map(|ca| vec![ca.der().to_vec()]);
    let client = connect(&config).unwrap();
    let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
    let api = ClientBuilder::new(client, agent, Limits::UNLIMITED).client_for("probe");
    wait_for_api_server(&api, url, Duration::from_millis(900)).await
}

async fn fault(ca: &Ca, trusted: &Ca, name: &str, adjust: impl FnOnce(&mut CertificateParams)) -> CertificateFault {
    let server = Server::start(ca, name, adjust, "200 OK").await;
    let error = probe(&server.url, Some(trusted)).await.unwrap_err();
    let Unreachable::Certificate { fault, .. } = error else { panic!("{error}") };
    fault
}

#[tokio::test]
async fn a_healthy_server_is_taken() {
    let ca = authority("kubernetes");
    let server = Server::start(&ca, "127.0.0.1", |_| (), "200 OK").await;
    probe(&server.url, Some(&ca)).await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_named_with_its_fault() {
    let ca = authority("kubernetes");
    for stranger in [authority("other"), authority("kubernetes")] {
        assert_eq!(fault(&ca, &stranger, "127.0.0.1", |_| ()).await, CertificateFault::UnknownIssuer);
    }
    assert_eq!(
        fault(&ca, &ca, "kubernetes", |_| ()).await,
        CertificateFault::OtherName { valid_for: vec!["kubernetes".to_owned()] }
    );
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    };
    assert_eq!(fault(&ca, &ca, "127.0.0.1", expired).await, CertificateFault::Expired);
    let future = |params: &mut CertificateParams| params.not_before = date_time_ymd(3000, 1, 1);
    assert_eq!(fault(&ca, &ca, "127.0.0.1", future).await, CertificateFault::NotYetValid);
    // Measured: rustls takes no CA certificate for a server's.
    let authority = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    assert!(matches!(fault(&ca, &ca, "127.0.0.1", authority).await, CertificateFault::Other(_)));
}

#[tokio::test]
async fn the_fault_comes_with_what_to_do() {
    let ca = authority("kubernetes");
    let server = Server::start(&ca, "kubernetes", |_| (), "200 OK").await;
    let sentence = probe(&server.url, Some(&ca)).await.unwrap_err().to_string().replace(&server.url, "URL");
    assert_eq!(
        sentence,
        "the certificate of the API server URL is not valid for that name (only for kubernetes): \
         use a name that it has in `server`, or set `tls-server-name`"
    );
}

#[tokio::test]
async fn a_server_that_refuses_says_which_way() {
    let ca = authority("kubernetes");
    let refusing = async |status| {
        let server = Server::start(&ca, "127.0.0.1", |_| (), status).await;
        (server.url.clone(), probe(&server.url, Some(&ca)).await.unwrap_err())
    };
    let message = |code: &str| format!("the server answered {code}: ok");
    let (server, error) = refusing("401 Unauthorized").await;
    assert_eq!(error, Unreachable::Unauthorized { server });
    let (server, error) = refusing("403 Forbidden").await;
    assert_eq!(error, Unreachable::Forbidden { server, message: message("403") });
    let (server, error) = refusing("503 Service Unavailable").await;
    assert_eq!(error, Unreachable::Unhealthy { server, code: 503, message: message("503") });
}

#[tokio::test]
async fn nobody_there_and_no_tls_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nClient sent no HTTP request").await);
        drop(stream.read(&mut [0; 1024]).await);
    });
    let ca = authority("kubernetes");
    assert_eq!(probe(&url, Some(&ca)).await.unwrap_err(), Unreachable::NotTls { server: url.clone() });
    tasks.join_next().await;
    assert_eq!(probe(&url, Some(&ca)).await.unwrap_err(), Unreachable::Refused { server: url.clone() });
}
