//! The result of the last reload.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::Metrics;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::prometheus_client::registry::Registry as MetricsRegistry;
use parking_lot::Mutex;

/// The result of the last reload of the configuration, also as metrics. Cheap to clone; all clones are one.
///
/// The check `configuration` of `/readyz` is [`check`](Self::check).
#[derive(Debug, Clone, Default)]
pub(crate) struct ReloadState {
    last: Arc<Mutex<Option<LastReload>>>,
    metrics: ReloadMetrics,
}

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastReload {
    /// Time at which the configuration was loaded.
    pub(crate) at: Timestamp,
    /// Every mistake, if the configuration was refused. The previous settings are in use then.
    pub(crate) result: Result<(), Vec<String>>,
}

impl ReloadState {
    /// The state before the first reload, with metrics in that registry.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self { last: Arc::default(), metrics: metrics.register(ReloadMetrics::register) }
    }

    /// The last reload; `None` before the first.
    pub(crate) fn last(&self) -> Option<LastReload> {
        self.last.lock().clone()
    }

    /// Succeeds if the settings in use are the current configuration.
    ///
    /// # Errors
    /// The reason for readiness to fail: when the last reload was refused, and every mistake.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.last() {
            Some(LastReload { at, result: Err(mistakes) }) => Err(format!(
                "the configuration was refused at {at:.0}, and the settings from before it are in use: {}",
                mistakes.join("; ")
            )),
            Some(LastReload { result: Ok(()), .. }) | None => Ok(()),
        }
    }

    pub(super) fn set(&self, last: LastReload) {
        self.metrics.record(&last);
        *self.last.lock() = Some(last);
    }
}

/// The reloads, counted.
///
/// # Upstream
/// Named as the reloads of kube-apiserver, `apiserver_authentication_config_controller_automatic_reloads_total`.
#[derive(Debug, Clone, Default)]
struct ReloadMetrics {
    reloads: ByStatus<Counter>,
    last_timestamp: ByStatus<Gauge>,
    last_failed: Gauge,
}

/// By the label `status`: success or failure.
type ByStatus<M> = Family<[(&'static str, &'static str); 1], M>;

impl ReloadMetrics {
    fn register(registry: &mut MetricsRegistry) -> Self {
        let metrics = Self::default();
        registry.register(
            "kube_controller_manager_config_automatic_reloads",
            "Reloads of the configuration by status: success or failure",
            metrics.reloads.clone(),
        );
        registry.register(
            "kube_controller_manager_config_automatic_reload_last_timestamp_seconds",
            "Time of the last reload of the configuration by status, in seconds since 1970",
            metrics.last_timestamp.clone(),
        );
        registry.register(
            "kube_controller_manager_config_last_reload_failed",
            "Whether the last reload of the configuration failed: 1, and 0 otherwise",
            metrics.last_failed.clone(),
        );
        metrics
    }

    fn record(&self, last: &LastReload) {
        let status = [("status", if last.result.is_ok() { "success" } else { "failure" })];
        self.reloads.get_or_create(&status).inc();
        self.last_timestamp.get_or_create(&status).set(last.at.as_second());
        self.last_failed.set(i64::from(last.result.is_err()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("it is a time")
    }

    #[test]
    fn a_refused_configuration_shows_in_the_check_and_in_metrics_until_one_is_taken() {
        let metrics = Metrics::new();
        let state = ReloadState::new(&metrics);
        assert_eq!((state.check(), state.last()), (Ok(()), None));
        let mistakes = vec!["kcm.yaml:3:1: a".to_owned(), "kcm.yaml:4:1: b".to_owned()];
        state.set(LastReload { at: at(100), result: Err(mistakes) });
        let refused = "the configuration was refused at 1970-01-01T00:01:40Z, and the settings from before it are in use: \
                       kcm.yaml:3:1: a; kcm.yaml:4:1: b";
        assert_eq!(state.check(), Err(refused.to_owned()));
        state.clone().set(LastReload { at: at(200), result: Ok(()) });
        assert_eq!((state.check(), state.last()), (Ok(()), Some(LastReload { at: at(200), result: Ok(()) })));

        let encoded = metrics.encode();
        for line in [
            "kube_controller_manager_config_automatic_reloads_total{status=\"success\"} 1",
            "kube_controller_manager_config_automatic_reloads_total{status=\"failure\"} 1",
            "kube_controller_manager_config_automatic_reload_last_timestamp_seconds{status=\"success\"} 200",
            "kube_controller_manager_config_automatic_reload_last_timestamp_seconds{status=\"failure\"} 100",
            "kube_controller_manager_config_last_reload_failed 0",
        ] {
            assert!(encoded.lines().any(|written| written == line), "{line}:\n{encoded}");
        }
    }
}
