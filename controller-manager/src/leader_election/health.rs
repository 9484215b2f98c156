//! The health check of leader election.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::client::{ElapsedClock, Mark};
use serde::Serialize;
use tokio::sync::watch;

use super::leadership::Leadership;
use super::thread::LeaseConnection;

/// Time after the end of its lease for which a leader that has not noticed the end is still healthy.
///
/// # Upstream
/// `NewLeaderHealthzAdaptor(time.Second * 20)` in `cmd/kube-controller-manager/app`.
const TOLERANCE: Duration = Duration::from_secs(20);

/// The status of a lease that this process competes for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseStatus {
    /// The name of the lease.
    pub(crate) name: String,
    /// The identity of the holder, as far as it is known.
    pub(crate) holder: Option<String>,
    /// Whether this process leads.
    pub(crate) leads: bool,
    /// Seconds since this process sent its last successful renewal, while it leads.
    pub(crate) renewed_seconds_ago: Option<u64>,
}

/// The health check of leader election. It fails if this process acts under a lease that it has not renewed.
///
/// A process that has stepped down in time, or waits, is healthy: a restart would not help.
///
/// # Upstream
/// `HealthzAdaptor` of `client-go/tools/leaderelection`: name, tolerance and message are the same.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct LeaderHealth {
    duration: Duration,
    leases: Vec<Watched>,
    clock: Arc<dyn ElapsedClock>,
}

/// A lease, as its health check sees it.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) connection: LeaseConnection,
}

impl LeaderHealth {
    /// The name of the check.
    pub(crate) const NAME: &str = "leaderElection";
    /// The name of the readiness check of the connections of the leases.
    pub(crate) const CONNECTION: &str = "lease-connection";

    /// A check of leases that are valid for `duration` by `clock` after each renewal, each with its name.
    pub(crate) fn new(duration: Duration, leases: Vec<Watched>, clock: Arc<dyn ElapsedClock>) -> Self {
        Self { duration, leases, clock }
    }

    /// The status of each lease.
    pub(crate) fn leases(&self) -> Vec<LeaseStatus> {
        let now = self.clock.now();
        let status = |Watched { name, leadership, connection: _ }: &Watched| {
            let leadership = leadership.borrow();
            let renewed = leadership.renewed_at.map(|renewed_at| now.saturating_duration_since(renewed_at));
            LeaseStatus {
                name: name.clone(),
                holder: leadership.holder.clone(),
                leads: leadership.term.is_some(),
                renewed_seconds_ago: renewed.map(|renewed| renewed.as_secs()),
            }
        };
        self.leases.iter().map(status).collect()
    }

    /// Checks all leases now.
    ///
    /// # Errors
    /// The reason why this process is unhealthy.
    pub(crate) fn check(&self) -> Result<(), String> {
        let now = self.clock.now();
        self.leases.iter().try_for_each(|Watched { name, leadership, connection: _ }| {
            if is_overdue(leadership.borrow().renewed_at, self.duration, now) {
                return Err(format!("failed election to renew leadership on lease {name}"));
            }
            Ok(())
        })
    }

    /// Checks the connections of all leases, for readiness: a restart does not cure an outage.
    ///
    /// # Errors
    /// The lease that cannot be renewed, since when, and why.
    pub(crate) fn check_connections(&self) -> Result<(), String> {
        self.leases.iter().try_for_each(|Watched { name, leadership: _, connection }| {
            let status = connection.status();
            let Some(unreachable_for) = status.unreachable_for() else { return Ok(()) };
            let (seconds, cause) = (unreachable_for.as_secs(), status.cause.unwrap_or_default());
            Err(format!("the API server has been unreachable for the lease {name} for {seconds} s: {cause}"))
        })
    }
}

/// Returns `true` if a leader that renewed its lease last at `renewed_at` should have noticed long ago that the lease
/// has ended.
fn is_overdue(renewed_at: Option<Mark>, duration: Duration, now: Mark) -> bool {
    renewed_at.is_some_and(|renewed_at| now.saturating_duration_since(renewed_at) > duration + TOLERANCE)
}

#[cfg(test)]
mod tests {
    use kcm_framework::api::ObjectKey;
    use kcm_framework::client::SimulatedElapsed;

    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn watched(name: &str, leadership: &watch::Sender<Leadership>) -> Watched {
        let connection = LeaseConnection::new(&ObjectKey::namespaced("kube-system", name), "a_1");
        Watched { name: name.to_owned(), leadership: leadership.subscribe(), connection }
    }

    #[test]
    fn a_leader_that_does_not_renew_is_unhealthy_twenty_seconds_after_the_end_of_its_lease() {
        let renewed = Mark::after(Duration::from_hours(1));
        for (age, expected) in [(0, false), (15, false), (35, false), (36, true)] {
            let now = renewed + Duration::from_secs(age);
            assert_eq!(is_overdue(Some(renewed), DURATION, now), expected, "{age} s");
        }
    }

    #[test]
    fn a_process_that_does_not_lead_is_healthy() {
        assert!(!is_overdue(None, DURATION, Mark::after(Duration::from_hours(1))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_status_of_a_lease_names_its_holder_and_the_last_renewal_of_a_leader() {
        let (leadership, clock) = (watch::Sender::<Leadership>::default(), SimulatedElapsed::starting_now());
        let leases = vec![watched("main", &leadership)];
        let health = LeaderHealth::new(DURATION, leases, Arc::new(clock.clone()));
        let status = |holder: Option<&str>, leads, renewed_seconds_ago| LeaseStatus {
            name: "main".to_owned(),
            holder: holder.map(str::to_owned),
            leads,
            renewed_seconds_ago,
        };
        assert_eq!(health.leases(), [status(None, false, None)]);
        let holder = Some("a_1".to_owned());
        let renewed_at = Some(clock.now());
        leadership.send_replace(Leadership { holder, term: Some(1), renewed_at, ..Leadership::default() });
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(health.leases(), [status(Some("a_1"), true, Some(2))]);
    }

    #[tokio::test(start_paused = true)]
    async fn any_lease_that_is_not_renewed_makes_the_process_unhealthy() {
        let (main, migration) = (watch::Sender::default(), watch::Sender::<Leadership>::default());
        let leases = vec![watched("main", &main), watched("migration", &migration)];
        let clock = SimulatedElapsed::starting_now();
        let health = LeaderHealth::new(DURATION, leases, Arc::new(clock.clone()));
        assert_eq!(health.check(), Ok(()));
        migration.send_replace(Leadership { renewed_at: Some(clock.now()), ..Leadership::default() });
        tokio::time::advance(Duration::from_secs(36)).await;
        main.send_replace(Leadership { renewed_at: Some(clock.now()), ..Leadership::default() });
        assert_eq!(health.check(), Err("failed election to renew leadership on lease migration".to_owned()));
        migration.send_replace(Leadership::default());
        assert_eq!(health.check(), Ok(()));
    }
}
