//! The metrics of the connection to the API server, which upstream does not have.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kcm_informers::Connection;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// State of the connection to the API server and number of outages, read from the connection at each scrape.
#[derive(Clone, Default)]
pub(crate) struct ConnectionMetrics {
    reachable: Gauge,
    outages: Counter,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl ConnectionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "api_server_reachable",
            "1 if the API server can be reached, and 0 otherwise",
            self.reachable.clone(),
        );
        registry.register("api_server_outages", "Outages of the API server since the start", self.outages.clone());
    }

    pub(super) fn show(&self, connection: &Connection) {
        *self.connection.lock() = Some(connection.clone());
    }

    pub(super) fn refresh(&self) {
        if let Some(connection) = &*self.connection.lock() {
            self.reachable.set(i64::from(connection.is_reachable()));
            self.outages.inner().store(connection.outages(), Ordering::Relaxed);
        }
    }
}
