//! The HTTP stack beneath kube's client.
//!
//! ```text
//! kube::Client ─▶ address, headers of the kubeconfig ─▶ credentials ─▶ pools ─▶ connector: TCP, proxy, TLS
//! ```
//!
//! # Guarantees
//! - A token file, a file of certificates, and the credentials of an exec plugin are read again while the client is used:
//!   once a minute, and after a response 401 or a connection that failed.
//! - When a certificate has changed, new connections take the place of the present ones. What was requested is answered,
//!   watches end and are resumed.
//! - Files that cannot be used for a while change nothing.
//! - A connection is used for 30 to 60 minutes. Then another takes its place, so that load spreads over the API servers
//!   behind a load balancer. Watches end by themselves, within ten minutes.
//! - A probe goes over the connection whose request failed last. If a fresh connection serves, it takes the place of all
//!   others ([`ProbePath`]).
//!
//! # Upstream
//! client-go reads certificates every five minutes and at each handshake, and closes all connections when the client
//! certificate has changed, whatever was requested over them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use kcm_informers::ProbePath;
use kube::client::{Body, ConfigExt};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, ServiceBuilder};

use super::authorization::{ClientCertificate, Credentials, ExecPluginMetrics};
use super::connector::{CONNECT_TIMEOUT, Connectors};
use super::open_stream::StreamBody;
use super::pools::Pools;
use super::proxy::Proxy;
use super::tls_files::{TlsFiles, TlsMaterial};
use crate::client_provider::CredentialsError;
use crate::clock::{Clock, SystemClock};
use crate::error::error_chain;

/// Period between two reads of the files of certificates.
const RELOAD_PERIOD: Duration = Duration::from_mins(1);

/// The least time for which connections are used; the time is drawn from [it, 2 × it).
const LIFETIME: Duration = Duration::from_mins(30);

/// The least time between two readings, however many requests fail.
const RELOAD_GAP: Duration = Duration::from_secs(1);

/// A configuration that cannot be used to connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// The address of the proxy is invalid.
    #[error("the proxy of the API server, {0}, cannot be used: {1}")]
    Proxy(String, String),
    /// The CA, client certificate or key is invalid.
    #[error(
        "the certificates of the kubeconfig cannot be used: check `certificate-authority`, `client-certificate` and `client-key`"
    )]
    Certificates(#[source] BoxError),
    /// The `tls-server-name` is invalid.
    #[error("`tls-server-name` of the kubeconfig, \"{0}\", is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The credentials are invalid.
    #[error("the credentials of the kubeconfig cannot be used: check its user's token, token file or exec command")]
    Credentials(#[source] BoxError),
}

/// A client over connections that all identities share.
///
/// Requests are sent once: kube's retry layer, which repeats writes too, is left out.
///
/// # Panics
/// Outside of a tokio runtime.
///
/// # Errors
/// If the configuration names a proxy, certificates or credentials that cannot be used.
pub fn connect(config: &kube::Config) -> Result<kube::Client, StackError> {
    connect_with_metrics(config, &ExecPluginMetrics::default())
}

/// The same as [`connect`], with the metrics of the exec plugin that the configuration may name.
///
/// # Panics
/// As [`connect`].
///
/// # Errors
/// As [`connect`].
pub fn connect_with_metrics(config: &kube::Config, plugins: &ExecPluginMetrics) -> Result<kube::Client, StackError> {
    connect_seeded(config, plugins, 0)
}

/// The same as [`connect_with_metrics`]. The times for which connections are used derive from `seed`.
///
/// # Panics
/// As [`connect`].
///
/// # Errors
/// As [`connect`].
pub fn connect_seeded(
    config: &kube::Config,
    plugins: &ExecPluginMetrics,
    seed: u64,
) -> Result<kube::Client, StackError> {
    let credentials = Credentials::of(&config.auth_info, clock(), plugins);
    let credentials = credentials.map_err(|error| StackError::Credentials(error.into()))?;
    let stack = Arc::new(Stack::new(config, credentials, seed)?);
    if !stack.files.is_empty() {
        stack.tasks.lock().spawn(keep_current(Arc::downgrade(&stack), Arc::clone(&stack.reload)));
    }
    let service = tower::service_fn(move |request| Arc::clone(&stack).send(request));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer().map_err(|error| StackError::Credentials(error.into()))?)
        .service(service);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// The clock of the expiry that an exec plugin returns.
fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

struct Stack {
    files: TlsFiles,
    server_name: Option<ServerName<'static>>,
    proxy: Option<Arc<Proxy>>,
    connect_timeout: Duration,
    credentials: Credentials,
    rng: Mutex<fastrand::Rng>,
    current: Mutex<Arc<Connections>>,
    /// Has the files read before it is time.
    reload: Arc<Notify>,
    /// The tasks that read the files; they end with the stack.
    tasks: Mutex<JoinSet<()>>,
}

/// The connections that were made with some certificates.
struct Connections {
    material: TlsMaterial,
    pools: Pools,
    /// When others take their place.
    retire_at: Instant,
}

impl Stack {
    fn new(config: &kube::Config, credentials: Credentials, seed: u64) -> Result<Self, StackError> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // An error means that another thread has installed one.
            drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        }
        let server_name = match &config.tls_server_name {
            Some(name) => Some(ServerName::try_from(name.clone()).map_err(|_| StackError::ServerName(name.clone()))?),
            None => None,
        };
        let proxy = match &config.proxy_url {
            Some(url) => Some(Arc::new(proxy(url)?)),
            None => None,
        };
        let files = TlsFiles::of(config);
        let material = files.read().map_err(|error| StackError::Certificates(error.into()))?;
        let connect_timeout = config.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let mut rng = fastrand::Rng::with_seed(seed);
        let connections =
            connections(&files, material, server_name.clone(), proxy.clone(), connect_timeout, lifetime(&mut rng))
                .map_err(|error| StackError::Certificates(error.into()))?;
        let (rng, current) = (Mutex::new(rng), Mutex::new(Arc::new(connections)));
        let (reload, tasks) = Default::default();
        Ok(Self { files, server_name, proxy, connect_timeout, credentials, rng, current, reload, tasks })
    }

    async fn send(self: Arc<Self>, mut request: Request<Body>) -> Result<Response<StreamBody>, BoxError> {
        let credentials = self.credentials.current().await?;
        if let Some(certificate) = &credentials.certificate {
            self.use_certificate(certificate)?;
        }
        if let Some(header) = &credentials.header
            && !request.headers().contains_key(AUTHORIZATION)
        {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        let probe = ProbePath::of(&request);
        let connections = self.connections(probe.as_ref())?;
        let response = match probe {
            Some(_) => connections.pools.probe(request).await,
            None => connections.pools.send(request).await,
        };
        match &response {
            Ok(response) if response.status() != StatusCode::UNAUTHORIZED => {}
            Ok(_) => {
                self.credentials.refused(&credentials);
                self.reload.notify_one();
            }
            Err(_) => self.reload.notify_one(),
        }
        response
    }

    /// The connections that a request goes over: the present ones, or fresh ones for a probe that asks for these.
    fn connections(self: &Arc<Self>, probe: Option<&ProbePath>) -> Result<Arc<Connections>, BoxError> {
        let present = Arc::clone(&self.current.lock());
        if let Some(probe) = probe.filter(|probe| probe.is_fresh()) {
            let stack = Arc::clone(self);
            let make = || self.connect(present.material.clone()).map(Arc::new);
            let replaced = Arc::clone(&present);
            let adopt = move |fresh| {
                if stack.replace(&replaced, fresh) {
                    replaced.pools.retire();
                }
            };
            return Ok(probe.connections(make, adopt)?);
        }
        if Instant::now() < present.retire_at {
            return Ok(present);
        }
        let next = Arc::new(self.connect(present.material.clone())?);
        if self.replace(&present, next) {
            tracing::debug!("Connections to the API server have reached their age and are replaced");
        }
        Ok(Arc::clone(&self.current.lock()))
    }

    /// Puts `next` into the place of the present connections, unless others have taken it; returns `true` if it did.
    fn replace(&self, present: &Arc<Connections>, next: Arc<Connections>) -> bool {
        let mut current = self.current.lock();
        let is_present = Arc::ptr_eq(&current, present);
        if is_present {
            *current = next;
        }
        is_present
    }

    fn connect(&self, material: TlsMaterial) -> kube::Result<Connections> {
        let (server_name, proxy) = (self.server_name.clone(), self.proxy.clone());
        let lifetime = lifetime(&mut self.rng.lock());
        connections(&self.files, material, server_name, proxy, self.connect_timeout, lifetime)
    }

    /// Connects with the client certificate of an exec plugin from now on.
    fn use_certificate(&self, certificate: &ClientCertificate) -> Result<(), CredentialsError> {
        let present = Arc::clone(&self.current.lock());
        if present.material.has_certificate(certificate) {
            return Ok(());
        }
        self.renew(&present, present.material.with_certificate(certificate)).map_err(CredentialsError::new)
    }

    /// Reads the files, and renews the connections if the certificates have changed.
    async fn read_again(&self) {
        let files = self.files.clone();
        let read = tokio::task::spawn_blocking(move || files.read()).await;
        let present = Arc::clone(&self.current.lock());
        let renewed = match read {
            Ok(Ok(material)) => {
                let material = if let Credentials::Exec(_) = self.credentials {
                    present.material.with_roots_of(&material)
                } else {
                    material
                };
                if material == present.material {
                    return;
                }
                self.renew(&present, material).map_err(BoxError::from)
            }
            Ok(Err(error)) => Err(error.into()),
            // The runtime is shutting down.
            Err(_) => return,
        };
        if let Err(error) = renewed {
            let error = error_chain(error.as_ref());
            tracing::warn!(error, "Cannot use the certificates of the kubeconfig; the last ones are used");
        }
    }

    /// Replaces the connections by others with `material`, unless that has happened since.
    fn renew(&self, present: &Arc<Connections>, material: TlsMaterial) -> kube::Result<()> {
        let connections = self.connect(material)?;
        let is_replaced = present.material.is_replaced_by(&connections.material);
        if self.replace(present, Arc::new(connections)) {
            if is_replaced {
                tracing::info!("Certificates have changed; connections to the API server are renewed");
            }
            present.pools.retire();
        }
        Ok(())
    }
}

/// Reads the files of certificates once a minute, and when `reload` is notified.
async fn keep_current(stack: Weak<Stack>, reload: Arc<Notify>) {
    loop {
        // Either is a reason to read.
        drop(timeout(RELOAD_PERIOD, reload.notified()).await);
        let Some(stack) = stack.upgrade() else { return };
        stack.read_again().await;
        drop(stack);
        sleep(RELOAD_GAP).await;
    }
}

fn connections(
    files: &TlsFiles,
    material: TlsMaterial,
    server_name: Option<ServerName<'static>>,
    proxy: Option<Arc<Proxy>>,
    timeout: Duration,
    lifetime: Duration,
) -> kube::Result<Connections> {
    let tls = files.client_config(&material)?;
    let pools = Pools::new(Connectors::new(tls, server_name, proxy, timeout));
    Ok(Connections { material, pools, retire_at: Instant::now() + lifetime })
}

fn lifetime(rng: &mut fastrand::Rng) -> Duration {
    LIFETIME.mul_f64(1.0 + rng.f64())
}

fn proxy(url: &http::Uri) -> Result<Proxy, StackError> {
    Proxy::parse(&url.to_string()).map_err(|error| {
        let host = url.host().unwrap_or_default().to_owned();
        StackError::Proxy(host, error.to_string())
    })
}
