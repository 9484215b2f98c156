//! An API server behind kube-apiserver: it serves what a scenario puts there, such as the metrics APIs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto::aws_lc_rs};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::pki::Pki;

/// The responses by their paths, without queries.
type Responses = Arc<Mutex<BTreeMap<String, Value>>>;

/// A server of its own on a port of this machine. It ends when it is dropped.
pub(crate) struct AggregatedApi {
    port: u16,
    responses: Responses,
    _tasks: JoinSet<()>,
}

impl AggregatedApi {
    /// Starts the server; its certificate is in `folder`.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let identity = Pki::new(&folder.join("aggregated"))?.server()?;
        let certificates = CertificateDer::pem_file_iter(&identity.certificate)
            .and_then(Iterator::collect)
            .context("cannot read the certificate of the aggregated API")?;
        let key = PrivateKeyDer::from_pem_file(&identity.key).context("cannot read its key")?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on a free port")?;
        let port = listener.local_addr()?.port();
        let responses = Responses::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&responses)));
        Ok(Self { port, responses, _tasks: tasks })
    }

    /// Serves a response under a path; `None` for none.
    pub(crate) fn set(&self, path: &str, response: Option<Value>) {
        let mut responses = self.responses.lock().unwrap_or_else(PoisonError::into_inner);
        match response {
            Some(response) => responses.insert(path.to_owned(), response),
            None => responses.remove(path),
        };
    }

    /// The service that leads kube-apiserver here, and the registrations of these groups and versions.
    pub(crate) fn registrations(&self, served: &[(&str, &str)]) -> Vec<Value> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "default", "name": "aggregated" },
            "spec": { "type": "ExternalName", "externalName": "localhost" },
        });
        let registration = |(group, version): &(&str, &str)| {
            json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": { "name": format!("{version}.{group}") },
                "spec": {
                    "group": group, "version": version, "insecureSkipTLSVerify": true,
                    "groupPriorityMinimum": 100, "versionPriority": 100,
                    "service": { "namespace": "default", "name": "aggregated", "port": self.port },
                },
            })
        };
        std::iter::once(service).chain(served.iter().map(registration)).collect()
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, responses: Responses) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let (acceptor, responses) = (acceptor.clone(), Arc::clone(&responses));
                connections.spawn(async move {
                    // A client that leaves is no failure of the scenario.
                    let _ended = serve(stream, acceptor, responses).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers the requests of a connection, none of which has a body.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, responses: Responses) -> Result<()> {
    const END: &[u8] = b"\r\n\r\n";
    let mut stream = acceptor.accept(stream).await?;
    let mut read = Vec::new();
    loop {
        let Some(end) = read.windows(END.len()).position(|window| window == END) else {
            let mut chunk = [0; 4096];
            let length = stream.read(&mut chunk).await?;
            if length == 0 {
                return Ok(());
            }
            read.extend_from_slice(&chunk[..length]);
            continue;
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end + END.len());
        let path = head.split(' ').nth(1).unwrap_or_default();
        // The one character of the paths here that kube-apiserver escapes.
        let path = path.split('?').next().unwrap_or_default().replace("%2A", "*");
        let (code, body) = respond(&path, &responses);
        let body = body.to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        stream.flush().await?;
    }
}

fn respond(path: &str, responses: &Responses) -> (&'static str, Value) {
    let found = responses.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
    if let Some(found) = found {
        return ("200 OK", found);
    }
    if let ["", "apis", group, version] = path.split('/').collect::<Vec<_>>()[..] {
        let version = format!("{group}/{version}");
        let list = json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [] });
        return ("200 OK", list);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "there is no such metric",
    });
    ("404 Not Found", status)
}
