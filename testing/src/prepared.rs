//! [`PreparedManager`]: what all managers of a scenario share.

use std::sync::Arc;

use kcm_framework::client::{ApiError, ClientBuilder, Limits};
use kcm_framework::clock::Clock;
use kcm_framework::discovery::{Discovery, Refresher};
use kcm_framework::{Extensions, Manager, ManagerBuilder, Metrics, user_agent};
use kcm_sandbox_apiserver::Sandbox;

use crate::environment::TestEnvironment;

/// The descriptors, selection and settings of an environment, read once for any number of managers.
///
/// Reading settings is most of the start of a manager. Cheap to clone.
///
/// # Guarantees
/// Managers share no metrics. They share the extensions unless [`extensions`](Self::extensions) replaces them.
#[derive(Debug, Clone)]
pub struct PreparedManager {
    builder: ManagerBuilder,
}

impl TestEnvironment {
    /// Reads descriptors, selection and settings. Preparations of the API server are not run.
    ///
    /// # Panics
    /// If descriptors or settings are refused.
    #[must_use]
    pub fn prepare_manager(&self) -> PreparedManager {
        let registry = self.registry();
        let selection = self.selection(&registry);
        let settings = self.settings(&registry);
        let builder = Manager::builder(registry, settings)
            .selection(selection)
            .limits(Limits::UNLIMITED)
            .extensions(self.extensions.clone())
            .explain_memory(self.explain_memory.unwrap_or(kcm_framework::explain::DEFAULT_MEMORY));
        PreparedManager { builder }
    }
}

impl PreparedManager {
    /// Replaces the discovery of the managers: see [`ManagerBuilder::discovery`] and [`discover`].
    #[must_use]
    pub fn discovery(self, discovery: Discovery) -> Self {
        Self { builder: self.builder.discovery(discovery) }
    }

    /// Passes these values to the controllers of the managers, instead of the values of the environment.
    #[must_use]
    pub fn extensions(self, extensions: Extensions) -> Self {
        Self { builder: self.builder.extensions(extensions) }
    }

    /// Returns the options of one manager, with metrics of its own. Like a new process, it needs its own seed.
    pub fn manager(&self, clock: impl Clock, seed: u64) -> ManagerBuilder {
        self.builder.clone().metrics(Metrics::new()).clock(clock).seed(seed)
    }
}

/// Reads the resources that an API server serves, for managers that need not discover them again.
///
/// # Errors
/// If a fault of the API server fails the requests.
pub async fn discover(sandbox: &Sandbox) -> Result<Discovery, ApiError> {
    let clients = ClientBuilder::new(sandbox.client(), user_agent(), Limits::UNLIMITED);
    let refresher = Refresher::new(clients.client_for(ClientBuilder::DISCOVERY));
    refresher.refresh().await?;
    let resources: Arc<_> = refresher.discovery().resources();
    Ok(Discovery::fixed(resources))
}
