//! An HTTP/2 server that tells who its clients are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A client certificate; the server reads the user from its serial number.
    pub(crate) fn client(&self, user: u8) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("user {user}"));
        params.serial_number = Some(vec![1, user].into());
        let key = KeyPair::generate().unwrap();
        Identity { certificate: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }

    /// Speaks TLS as 127.0.0.1, and asks clients for a certificate.
    pub(crate) fn acceptor(&self, protocol: &str) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(tls))
    }
}

/// Answers with the user and the header `Authorization` of the request, keeps watches open, and answers 401 to what asks
/// for it.
pub(crate) struct Server {
    pub(crate) config: kube::Config,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(authority: &Authority) -> Self {
        let acceptor = authority.acceptor("h2");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = kube::Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.root_cert = Some(vec![authority.der()]);
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::Relaxed);
                serving.spawn(serve(acceptor.clone(), stream));
            }
        });
        Self { config, connections, _tasks: tasks }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream) {
    // A client that does not trust the server ends the handshake.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let certificates = stream.get_ref().1.peer_certificates();
    let user = certificates.map_or(0, |chain| user_of(chain[0].as_ref()));
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let mut open = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let header = request.headers().get("authorization").map_or("none", |value| value.to_str().unwrap());
        let query = request.uri().query().unwrap_or_default();
        let mut response = Response::new(());
        if query.contains("refuse") {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
        }
        let mut body = respond.send_response(response, false).unwrap();
        body.send_data(format!("{user} {header}").into(), !query.contains("watch")).unwrap();
        if query.contains("watch") {
            open.push(body);
        }
    }
}

/// The last byte of the serial number, which is 01 and the user.
fn user_of(der: &[u8]) -> u8 {
    let at = der.windows(3).position(|bytes| bytes == [0x02, 0x02, 0x01]).unwrap();
    der[at + 3]
}

/// Who the server says we are: the user of our certificate, and our header.
pub(crate) async fn who(client: &kube::Client) -> String {
    ask(client, "").await.unwrap()
}

/// As [`who`], with a query.
pub(crate) async fn ask(client: &kube::Client, query: &str) -> Result<String, kube::Error> {
    let response = client.send(Request::get(format!("/api?{query}")).body(Body::empty()).unwrap()).await?;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

/// An open watch, whose first bytes have been read.
pub(crate) async fn watch(client: &kube::Client) -> Body {
    let response = client.send(Request::get("/api?watch=true").body(Body::empty()).unwrap()).await.unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    body
}

/// A folder with files that are replaced.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn string(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Puts a folder with these files in the place of the last one, as a kubelet does with the data of a volume: behind
    /// the link `..data`.
    pub(crate) fn mount(&self, data: &str, files: &[(&str, &str)]) {
        let folder = self.path(data);
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
            let link = self.path(name);
            if !link.is_symlink() {
                std::os::unix::fs::symlink(Path::new("..data").join(name), link).unwrap();
            }
        }
        std::os::unix::fs::symlink(data, self.path("..tmp")).unwrap();
        std::fs::rename(self.path("..tmp"), self.path("..data")).unwrap();
    }
}
