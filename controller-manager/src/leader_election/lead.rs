//! Runs a manager while this process leads.

use std::pin::pin;
use std::time::Duration;

use kcm_framework::{GRACE, Manager, ManagerError, Stop};

use super::thread::{LeaseThread, LeaseThreadError, Options};

/// What a manager does without the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Whether the caches are filled before the lease is acquired.
    pub(crate) warm_standby: bool,
    /// Whether a lost lease ends the process, as upstream; otherwise its loops stop, and it competes again.
    pub(crate) exit_on_lost_lease: bool,
}

/// Why a manager under leader election ended, other than on request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// The manager could not start.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Leader election could not start.
    #[error(transparent)]
    Thread(#[from] LeaseThreadError),
    /// The lease was lost.
    #[error("leader election lost: the lease was not renewed in time, or another process holds it")]
    LeaseLost,
}

/// Runs `manager` until `stop`, its loops while this process leads.
///
/// # Guarantees
/// No write is sent while this process does not lead. The lease is released when the manager has ended.
///
/// # Errors
/// [`Ended::LeaseLost`] where the lease was lost and `policy` ends the process then.
pub(crate) async fn run(
    manager: Manager,
    config: kube::Config,
    options: Options,
    policy: Policy,
    stop: Stop,
) -> Result<(), Ended> {
    let handle = manager.handle();
    handle.stop_loops(Duration::ZERO).await;
    let thread = LeaseThread::start(config, options, handle.fence().clone()).await?;
    let mut leadership = thread.leadership();
    if !policy.warm_standby {
        let leads = leadership.wait_for(|leadership| leadership.leads_until.is_some());
        let leads = tokio::select! {
            () = stop.drain.cancelled() => false,
            () = stop.abort.cancelled() => false,
            leads = leads => leads.is_ok(),
        };
        if !leads {
            thread.stop().await;
            return Ok(());
        }
    }
    let mut leads = false;
    let ended = {
        let mut running = pin!(manager.run(stop.clone()));
        leadership.mark_changed();
        loop {
            tokio::select! {
                ended = &mut running => break ended.map_err(Ended::from),
                changed = leadership.changed() => {
                    let now_leads = changed.is_ok() && leadership.borrow_and_update().leads_until.is_some();
                    match (leads, now_leads) {
                        (false, true) => {
                            tracing::info!("Successfully acquired lease; starting the controllers");
                            handle.start_loops();
                        }
                        (true, false) if policy.exit_on_lost_lease || changed.is_err() => {
                            tracing::error!("Leader election lost");
                            stop.abort.cancel();
                            drop(running.await);
                            break Err(Ended::LeaseLost);
                        }
                        (true, false) => {
                            tracing::warn!("Leader election lost; the controllers stop, and this process competes again");
                            let stopping = handle.stop_loops(GRACE);
                            tokio::select! {
                                ended = &mut running => break ended.map_err(Ended::from),
                                () = stopping => {}
                            }
                        }
                        (true, true) | (false, false) => {}
                    }
                    leads = now_leads;
                }
            }
        }
    };
    thread.stop().await;
    ended
}
