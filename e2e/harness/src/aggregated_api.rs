//! An API server behind kube-apiserver: it serves what a scenario puts there, such as the metrics APIs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto::aws_lc_rs};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::pki::Pki;

/// What the server serves, and what it has served.
#[derive(Default)]
struct State {
    /// By path.
    responses: BTreeMap<String, Value>,
    served: Vec<Served>,
}

/// A response that was served.
#[derive(Debug, Clone)]
pub struct Served {
    /// When.
    pub at: Instant,
    /// The path under which it was set.
    pub path: String,
}

/// A server of its own on a port of this machine. It ends when it is dropped.
pub struct AggregatedApi {
    port: u16,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

impl AggregatedApi {
    /// Starts the server; its certificate is in `folder`.
    pub async fn start(folder: &Path) -> Result<Self> {
        let identity = Pki::new(&folder.join("aggregated"))?.server("server")?;
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
        let state = Arc::<Mutex<State>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&state)));
        Ok(Self { port, state, _tasks: tasks })
    }

    /// Serves a response under a path, whatever the query; `None` for none. A path with a query is for that query, and
    /// comes before the same path without one.
    pub fn set(&self, path: &str, response: Option<Value>) {
        let responses = &mut lock(&self.state).responses;
        match response {
            Some(response) => responses.insert(path.to_owned(), response),
            None => responses.remove(path),
        };
    }

    /// What was served, in this order.
    pub fn served(&self) -> Vec<Served> {
        lock(&self.state).served.clone()
    }

    /// The registrations of these groups and versions.
    pub fn registrations(&self, served: &[(&str, &str)]) -> Vec<Value> {
        registrations(self.port, served)
    }
}

/// The service that leads kube-apiserver to this machine, and the registrations of these groups and versions at a port.
pub fn registrations(port: u16, served: &[(&str, &str)]) -> Vec<Value> {
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
                "service": { "namespace": "default", "name": "aggregated", "port": port },
            },
        })
    };
    std::iter::once(service).chain(served.iter().map(registration)).collect()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
                connections.spawn(async move {
                    // A client that leaves is no failure of the scenario.
                    let _ended = serve(stream, acceptor, &state).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers the requests of a connection, none of which has a body.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, state: &Mutex<State>) -> Result<()> {
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
        // The characters of paths and queries here that clients and kube-apiserver escape.
        let path = path.replace("%2A", "*").replace("%3D", "=");
        let (code, body) = respond(&path, &mut lock(state));
        let body = body.to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        stream.flush().await?;
    }
}

fn respond(path: &str, state: &mut State) -> (&'static str, Value) {
    let without_query = path.split('?').next().unwrap_or_default();
    for path in [path, without_query] {
        if let Some(found) = state.responses.get(path).cloned() {
            state.served.push(Served { at: Instant::now(), path: path.to_owned() });
            return ("200 OK", found);
        }
    }
    let path = without_query;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_for_a_query_comes_before_that_of_its_path_and_what_is_served_is_kept() {
        let mut state = State::default();
        for path in ["/pods", "/pods?labelSelector=app=web"] {
            state.responses.insert(path.to_owned(), json!(path));
        }
        for (path, expected) in [
            ("/pods?labelSelector=app=web", "/pods?labelSelector=app=web"),
            ("/pods?labelSelector=app=db", "/pods"),
            ("/pods", "/pods"),
        ] {
            assert_eq!(respond(path, &mut state), ("200 OK", json!(expected)), "{path}");
        }
        assert_eq!(respond("/nodes", &mut state).0, "404 Not Found");
        let served: Vec<&str> = state.served.iter().map(|it| &*it.path).collect();
        assert_eq!(served, ["/pods?labelSelector=app=web", "/pods", "/pods"]);
    }
}
