//! The checks of each path.

use kcm_framework::informers::InformerStatus;
use kcm_framework::{ControllerState, ControllerStatus, ManagerHandle};

use super::check::Check;

/// The checks of `/healthz` and `/livez`: `own`, and one for each controller that is initialized.
///
/// # Upstream
/// `ping` exists only without other checks.
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

/// Makes the check of the caches. It is for readiness only, because a restart does not cure a cache that does not sync.
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

/// Fails if a cache has not synced. The error names the kinds and the reasons.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kcm_framework::api::ObjectKey;
    use kcm_framework::api::views::Pod;
    use kcm_framework::{
        ControllerContext, ControllerDescriptor, Loops, Manager, Reconcile, ReconcileError, Registry, Session, Stop,
        async_trait,
    };
    use kcm_sandbox_apiserver::{Fault, PODS, Sandbox, Status};
    use tokio::task::JoinSet;

    use super::*;
    use crate::tests::settings;

    struct Nothing;

    #[async_trait]
    impl Reconcile for Nothing {
        async fn reconcile(&self, _: &ObjectKey, _: &Session) -> Result<(), ReconcileError> {
            Ok(())
        }
    }

    fn reads_pods(context: &ControllerContext) -> Loops {
        let mut pods = context.control_loop("pods");
        pods.primary::<Pod>();
        Loops::new().with(pods.reconcile(Nothing))
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_that_does_not_sync_is_named_with_its_reason_and_makes_nothing_else_fail() {
        let sandbox = Sandbox::default();
        let refusal = Status::forbidden(&PODS, "", "no role allows it");
        let fault = sandbox.faults().inject(Fault::on_any().resource(PODS).fail(refusal));
        let controller = ControllerDescriptor::new("pods-controller", |context| Ok(reads_pods(context)));
        let registry = Registry::of([controller]).expect("it is one controller");
        let manager = Manager::builder(registry, settings(&[])).build(sandbox.client(), "https://127.0.0.1");
        let handle = manager.handle();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(manager.run(Stop::default()).await) });
        tokio::time::sleep(Duration::from_secs(10)).await;
        let check = caches_check(&handle);
        let reason = check.run().expect_err("pods cannot be listed");
        assert!(reason.starts_with("pods has not synced: ") && reason.contains("no role allows it"), "{reason}");
        assert!(live(&handle, &[]).iter().all(|check| check.run().is_ok()), "a restart does not cure it");
        fault.remove();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(check.run(), Ok(()));
    }
}
