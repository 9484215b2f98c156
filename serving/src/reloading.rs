//! Reads the certificates and CAs of the HTTPS port again, and shows their state.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kcm_framework::clock::Clock;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::{Metrics, error_chain};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::access::Trust;
use super::health::Check;
use super::tls::Tls;

/// Interval at which certificates and CAs are read again.
///
/// Comparing their content needs no watch on folders, and notices every way of replacing a file.
const RELOAD: Duration = Duration::from_secs(5);

/// Time for which files may not match while they are being replaced.
const REPLACING: Duration = Duration::from_mins(1);

/// Interval at which a failure that goes on is logged again.
const REMINDER: Duration = Duration::from_mins(10);

/// Reads the certificates and CAs of the HTTPS port again.
pub(super) struct Reloading {
    tls: Arc<Tls>,
    trust: Arc<Trust>,
    clock: Arc<dyn Clock>,
    seconds_left: SecondsLeft,
    failure: Arc<Mutex<Failure>>,
}

/// Metric of the time until the first certificate ends.
#[derive(Debug, Clone, Default)]
struct SecondsLeft(Gauge<f64, AtomicU64>);

/// The failure that goes on, if one does. Pure.
#[derive(Debug, Default)]
struct Failure {
    error: String,
    /// `None` without a failure.
    since: Option<Instant>,
    logged: Option<Instant>,
}

impl Failure {
    /// Takes the result of a reload. Returns `true` if its error is to be logged.
    fn follow(&mut self, error: Option<String>, now: Instant) -> bool {
        let Some(error) = error else {
            *self = Self::default();
            return false;
        };
        self.error = error;
        self.since.get_or_insert(now);
        let is_due = self.logged.is_none_or(|logged| now.duration_since(logged) >= REMINDER);
        if is_due {
            self.logged = Some(now);
        }
        is_due
    }

    /// # Errors
    /// The error, if it has gone on for longer than a replacement of files takes.
    fn check(&self, now: Instant) -> Result<(), String> {
        match self.since.map(|since| now.duration_since(since)) {
            Some(lasts) if lasts >= REPLACING => Err(format!(
                "the files cannot be used since {}s, and the last valid ones are kept: {}",
                lasts.as_secs(),
                self.error
            )),
            Some(_) | None => Ok(()),
        }
    }
}

impl Reloading {
    pub(super) fn new(tls: Arc<Tls>, trust: Arc<Trust>, clock: Arc<dyn Clock>, metrics: &Metrics) -> Self {
        let seconds_left = metrics.register(|registry| {
            let metric = SecondsLeft::default();
            registry.register(
                "serving_certificate_ttl_seconds",
                "Seconds for which the certificates of the HTTPS port are still valid, the least of all; negative after the end",
                metric.0.clone(),
            );
            metric
        });
        let reloading = Self { tls, trust, clock, seconds_left, failure: Arc::default() };
        reloading.show_end();
        reloading
    }

    /// The check that fails while files cannot be used.
    pub(super) fn check(&self) -> Check {
        let failure = Arc::clone(&self.failure);
        Check::new("serving-certificates", move || failure.lock().check(Instant::now()))
    }

    /// Asks clients for certificates of the CAs that count now.
    pub(super) fn ask_clients(&self) {
        if let Err(error) = self.tls.ask_for(self.trust.subjects()) {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "Cannot request client certificates");
        }
    }

    /// Reads certificates and CAs again, for ever.
    pub(super) async fn run(&self) {
        loop {
            sleep(RELOAD).await;
            self.reload();
            self.show_end();
        }
    }

    fn reload(&self) {
        let certificates = self.tls.reload().map_err(|error| error_chain(&error));
        let authorities = self.trust.reload().map_err(|error| error_chain(&error));
        if matches!(certificates, Ok(true)) {
            tracing::info!("Loaded the certificates of the HTTPS port");
        }
        if matches!(authorities, Ok(true)) {
            tracing::info!("Loaded the client CAs");
            self.ask_clients();
        }
        let mut failure = self.failure.lock();
        if failure.follow(certificates.err().or(authorities.err()), Instant::now()) {
            let error = &failure.error;
            tracing::warn!(error, "Cannot load certificates of the HTTPS port; keeping the current ones");
        }
    }

    fn show_end(&self) {
        if let Some(end) = self.tls.first_end() {
            self.seconds_left.0.set(end.duration_since(self.clock.now()).as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_goes_on_is_logged_again_and_fails_the_check() {
        let (mut failure, begun) = (Failure::default(), Instant::now());
        let mut logged = Vec::new();
        for tick in 0..=300 {
            let now = begun + RELOAD * tick;
            if failure.follow(Some("no file".to_owned()), now) {
                logged.push(now - begun);
            }
            let lasts = now - begun;
            assert_eq!(failure.check(now).is_err(), lasts >= REPLACING, "{lasts:?}");
        }
        assert_eq!(logged, [Duration::ZERO, REMINDER, 2 * REMINDER]);
        let now = begun + RELOAD * 300;
        let reason = failure.check(now).expect_err("it goes on");
        assert!(reason.contains("since 1500s") && reason.ends_with(": no file"), "{reason}");
        assert!(!failure.follow(None, now) && failure.check(now).is_ok());
        assert!(failure.follow(Some("again".to_owned()), now), "another failure is logged at once");
    }
}
