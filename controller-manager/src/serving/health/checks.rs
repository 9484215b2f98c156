//! The checks of each path.

use kcm_framework::informers::InformerStatus;
use kcm_framework::{ControllerState, ControllerStatus, ManagerHandle};

use super::check::Check;

/// The checks of `/healthz` and `/livez`: `own`, and one for each controller that is initialized.
///
/// # Upstream
/// `ping` is there only while no other check is.
pub(crate) fn live(manager: &ManagerHandle, own: &[Check]) -> Vec<Check> {
    let controllers = manager.controllers();
    let of_controllers = controllers.iter().filter(|controller| is_initialized(controller)).map(|controller| {
        let (manager, name) = (manager.clone(), controller.name);
        Check::new(name, move || manager.health(name).unwrap_or(Ok(())))
    });
    let mut checks: Vec<Check> = own.iter().cloned().chain(of_controllers).collect();
    if checks.is_empty() {
        checks.push(Check::ping());
    }
    checks
}

/// The check of the caches, for readiness: a restart does not cure one that does not sync.
pub(crate) fn caches_check(manager: &ManagerHandle) -> Check {
    let manager = manager.clone();
    Check::new("caches", move || caches(&manager.informers()))
}

fn is_initialized(controller: &ControllerStatus) -> bool {
    !matches!(
        controller.state,
        ControllerState::Disabled(_)
            | ControllerState::Pending
            | ControllerState::Initializing
            | ControllerState::Skipped
            | ControllerState::Stopped
    )
}

/// Whether all caches have synced; the error names the kinds that have not, and why.
fn caches(informers: &[InformerStatus]) -> Result<(), String> {
    let unsynced = informers.iter().filter(|informer| !informer.synced);
    let reasons: Vec<String> = unsynced
        .map(|informer| {
            let reason = informer.reason.as_deref().unwrap_or("it is being listed");
            format!("{} has not synced: {reason}", informer.resource)
        })
        .collect();
    if reasons.is_empty() { Ok(()) } else { Err(reasons.join("; ")) }
}
