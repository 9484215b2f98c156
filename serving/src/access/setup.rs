//! Makes the access of the HTTPS port, and keeps it up to date.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kcm_framework::client::{ClientBuilder, Limits, LoadError, StackError, connect_with_metrics, load_config};
use kcm_framework::clock::Clock;
use kcm_framework::informers::{Factory, FactoryOptions};
use kcm_framework::{Metrics, user_agent};
use tokio_util::sync::CancellationToken;

use super::Access;
use super::authentication::{Authentication, AuthenticationOptions};
use super::authorization::{Authorization, AuthorizationOptions};
use super::cluster_config::{LookupError, look_up, watch_config};
use super::metrics::AccessMetrics;
use super::reviewer::{Reviewer, Reviewers};
use super::trust::{BundleSource, Trust, TrustError};

/// The rate limits of reviews, separate from other requests.
///
/// # Upstream
/// `getClient` of both options in `apiserver/pkg/server/options`.
const LIMITS: Limits = Limits { qps: 200.0, burst: 400 };

/// The names of the clients in User-Agent and metrics.
const AUTHENTICATION: &str = "authentication";
const AUTHORIZATION: &str = "authorization";

/// An error in the settings of authentication and authorization.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A kubeconfig cannot be used.
    #[error("cannot use the kubeconfig of --{flag}")]
    Kubeconfig {
        /// The flag of the kubeconfig.
        flag: &'static str,
        /// The reason why it cannot be loaded.
        source: LoadError,
    },
    /// The connection that a kubeconfig asks for.
    #[error("cannot connect to the API server with --{flag}")]
    Connect {
        /// The flag of the kubeconfig.
        flag: &'static str,
        /// The reason why no connection can be made.
        source: StackError,
    },
    /// A file with CAs cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// The access of the HTTPS port, and the parts that keep it up to date.
pub(crate) struct Setup {
    pub(crate) access: Access,
    pub(crate) trust: Arc<Trust>,
    /// `None` if nothing is read from the cluster.
    lookup: Option<Lookup>,
}

struct Lookup {
    reviewer: Arc<Reviewer>,
    clients: ClientBuilder,
    is_required: bool,
    seed: u64,
}

impl Setup {
    /// Loads kubeconfigs and files, without a request.
    ///
    /// # Errors
    /// If a file that was given cannot be used.
    pub(crate) async fn new(
        authentication: AuthenticationOptions,
        authorization: AuthorizationOptions,
        clock: Arc<dyn Clock>,
        metrics: &Metrics,
        seed: u64,
    ) -> Result<Self, SetupError> {
        let flag = "authentication-kubeconfig";
        let counted = metrics.register(AccessMetrics::register);
        let authenticating = client(authentication.kubeconfig.as_deref(), flag, metrics).await?;
        let authorizing = if authentication.kubeconfig == authorization.kubeconfig {
            authenticating.clone()
        } else {
            client(authorization.kubeconfig.as_deref(), "authorization-kubeconfig", metrics).await?
        };
        let reviewer = |clients: &ClientBuilder, name: &'static str| {
            Arc::new(Reviewer::new(clients.client_for(name), counted.clone()))
        };
        let reviewers = Reviewers {
            tokens: authenticating.as_ref().map(|clients| reviewer(clients, AUTHENTICATION)),
            access: authorizing.as_ref().map(|clients| reviewer(clients, AUTHORIZATION)),
        };
        if reviewers.access.is_none() && !authorization.always_allow.are_all() {
            tracing::warn!(
                "No authorization-kubeconfig provided, so SubjectAccessReview of authorization tokens won't work"
            );
        }
        let source = |file: Option<std::path::PathBuf>, flag: &str| match file {
            Some(file) => BundleSource::File(file),
            None if authentication.skip_lookup => BundleSource::None,
            None if authenticating.is_some() => BundleSource::Cluster,
            None => {
                tracing::warn!(
                    flag,
                    "No authentication-kubeconfig provided to look up the CAs in the cluster, so their certificates won't work"
                );
                BundleSource::None
            }
        };
        let clients = source(authentication.client_ca, "client-ca-file");
        let proxies = source(authentication.request_header_ca, "requestheader-client-ca-file");
        let is_read = [&clients, &proxies].into_iter().any(|source| *source == BundleSource::Cluster);
        let is_required = proxies == BundleSource::Cluster && !authentication.tolerate_lookup_failure;
        let trust = Arc::new(Trust::new(clients, proxies, authentication.headers));
        trust.reload()?;
        let lookup = reviewers.tokens.clone().zip(authenticating).filter(|_| is_read);
        let lookup = lookup.map(|(reviewer, clients)| Lookup { reviewer, clients, is_required, seed });
        let identity =
            Authentication::new(Arc::clone(&trust), clock, reviewers.tokens, authentication.token_ttl, counted.clone());
        let access = Access::new(identity, Authorization::new(authorization, reviewers.access), counted);
        Ok(Self { access, trust, lookup })
    }

    /// Separates the access from the parts that keep it up to date.
    pub(crate) fn split(self) -> (Access, Arc<Trust>, Follower) {
        let follower =
            Follower { trust: Arc::clone(&self.trust), lookup: self.lookup, has_begun: AtomicBool::new(false) };
        (self.access, self.trust, follower)
    }
}

/// Keeps the cluster's settings of authentication up to date.
pub(crate) struct Follower {
    trust: Arc<Trust>,
    lookup: Option<Lookup>,
    /// Set once the settings have been read. A task that is started again does not read them once more.
    has_begun: AtomicBool,
}

impl Follower {
    /// Reads the settings, and follows them until `stop`; `changed` is called after each change. After a panic it may be
    /// called again.
    ///
    /// # Errors
    /// If they are needed and cannot be read at the start.
    pub(crate) async fn run(&self, stop: &CancellationToken, changed: impl Fn()) -> Result<(), LookupError> {
        let Some(Lookup { reviewer, clients, is_required, seed }) = &self.lookup else {
            stop.cancelled().await;
            return Ok(());
        };
        if !self.has_begun.load(Ordering::Relaxed) {
            match stop.run_until_cancelled(look_up(reviewer.api())).await {
                None => return Ok(()),
                Some(Ok(config)) => {
                    if let Some(config) = config {
                        self.trust.follow(&config);
                        changed();
                    }
                }
                Some(Err(error)) if *is_required => return Err(error),
                Some(Err(error)) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "Continuing without the cluster's authentication settings; all requests may count as anonymous"
                    );
                }
            }
            self.has_begun.store(true, Ordering::Relaxed);
        }
        let factory = Factory::new(FactoryOptions::new(clients.kube_client_for(AUTHENTICATION), *seed));
        let (informer, mut maps) = watch_config(&factory);
        factory.start();
        let follow = async {
            while maps.changed().await.is_ok() {
                let map = maps.borrow_and_update().clone();
                if let Some(map) = map {
                    self.trust.follow(map.config());
                    changed();
                }
            }
        };
        stop.run_until_cancelled(follow).await;
        drop(informer);
        factory.shut_down().await;
        stop.cancelled().await;
        Ok(())
    }
}

/// Makes clients with the credentials of a kubeconfig, or of the pod if none is given. Returns `None` if there are
/// neither.
async fn client(
    kubeconfig: Option<&Path>,
    flag: &'static str,
    metrics: &Metrics,
) -> Result<Option<ClientBuilder>, SetupError> {
    let config = match load_config(kubeconfig, None).await {
        Ok(config) => config,
        Err(LoadError::NotInCluster { .. }) => return Ok(None),
        Err(error) if kubeconfig.is_none() => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(flag, error, "Cannot use the credentials of the pod");
            return Ok(None);
        }
        Err(source) => return Err(SetupError::Kubeconfig { flag, source }),
    };
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let client = connect_with_metrics(&config, metrics.exec_plugins());
    let client = client.map_err(|source| SetupError::Connect { flag, source })?;
    Ok(Some(ClientBuilder::with_metrics(client, user_agent(), LIMITS, metrics.requests_to(&host))))
}
