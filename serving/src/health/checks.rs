//! The checks of each path.

use kcm_framework::informers::{ConnectionStatus, InformerStatus};
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
    Check::new("caches", move || caches(&manager.informers(), &manager.connection()))
}

/// Makes the check of the connection to the API server. It is for readiness only: a restart does not cure an outage.
pub(crate) fn api_server_check(manager: &ManagerHandle) -> Check {
    let manager = manager.clone();
    Check::new("api-server", move || match manager.unusable_connection() {
        None => Ok(()),
        Some(unusable) => {
            let (users, seconds, cause) = (unusable.users, unusable.for_time.as_secs(), unusable.cause);
            Err(format!("the API server has been unreachable for {users} for {seconds} s: {cause}"))
        }
    })
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

/// Fails if a cache has not synced, or if nothing confirms that it is current. The error names kinds and reasons.
///
/// In an outage nothing confirms any cache, which the check of the API server says.
fn caches(informers: &[InformerStatus], connection: &ConnectionStatus) -> Result<(), String> {
    let is_outage = connection.unreachable_for().is_some();
    let problem = |informer: &InformerStatus| {
        let resource = &informer.resource;
        if !informer.synced {
            let reason = informer.reason.as_deref().unwrap_or("it is being listed");
            return Some(format!("{resource} has not synced: {reason}"));
        }
        if is_outage || !informer.is_stale() {
            return None;
        }
        let seconds = informer.confirmed_ago.map_or(0, |ago| ago.as_secs());
        let reason = informer.reason.as_deref().unwrap_or("its watch is silent");
        Some(format!("{resource} has shown no change and no bookmark for {seconds} s: {reason}"))
    };
    let problems: Vec<String> = informers.iter().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
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
    use kcm_sandbox_apiserver::{Cut, Fault, PODS, Sandbox, Status};
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

    /// A manager that reads pods; dropped, it ends.
    struct Running {
        sandbox: Sandbox,
        handle: ManagerHandle,
        _tasks: JoinSet<()>,
    }

    fn running(sandbox: Sandbox) -> Running {
        let controller = ControllerDescriptor::new("pods-controller", |context| Ok(reads_pods(context)));
        let registry = Registry::of([controller]).expect("it is one controller");
        let manager = Manager::builder(registry, settings(&[])).build(sandbox.client(), "https://127.0.0.1");
        let handle = manager.handle();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(manager.run(Stop::default()).await) });
        Running { sandbox, handle, _tasks: tasks }
    }

    async fn wait(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn refusal() -> Fault {
        Fault::on_any().resource(PODS).fail(Status::forbidden(&PODS, "", "no role allows it"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_that_does_not_sync_is_named_with_its_reason_and_makes_nothing_else_fail() {
        let sandbox = Sandbox::default();
        let fault = sandbox.faults().inject(refusal());
        let manager = running(sandbox);
        wait(10).await;
        let check = caches_check(&manager.handle);
        let reason = check.run().expect_err("pods cannot be listed");
        assert!(reason.starts_with("pods has not synced: ") && reason.contains("no role allows it"), "{reason}");
        assert!(live(&manager.handle, &[]).iter().all(|check| check.run().is_ok()), "a restart does not cure it");
        fault.remove();
        wait(60).await;
        assert_eq!(check.run(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_whose_watch_fails_for_minutes_is_named_with_its_reason() {
        let manager = running(Sandbox::default());
        wait(10).await;
        let check = caches_check(&manager.handle);
        let fault = manager.sandbox.faults().inject(refusal());
        manager.sandbox.faults().cut_watches(&PODS, Cut::Broken);
        wait(60).await;
        assert_eq!(check.run(), Ok(()));
        wait(100).await;
        let reason = check.run().expect_err("pods cannot be watched");
        assert!(reason.starts_with("pods has shown no change and no bookmark for 1"), "{reason}");
        assert!(reason.contains("no role allows it"), "{reason}");
        fault.remove();
        wait(121).await;
        assert_eq!(check.run(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_whose_watch_is_silent_is_named() {
        let manager = running(Sandbox::default());
        wait(600).await;
        let check = caches_check(&manager.handle);
        assert_eq!(check.run(), Ok(()), "bookmarks confirm it");
        manager.sandbox.faults().hold_watches(&PODS);
        wait(160).await;
        let reason = check.run().expect_err("nothing confirms pods");
        assert!(reason.starts_with("pods has shown no change and no bookmark for "), "{reason}");
        assert!(reason.ends_with(" s: its watch is silent"), "{reason}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_shows_in_a_check_of_its_own_with_its_time_and_its_reason() {
        let manager = running(Sandbox::default());
        wait(10).await;
        let (check, caches) = (api_server_check(&manager.handle), caches_check(&manager.handle));
        assert_eq!(check.run(), Ok(()));
        manager.sandbox.faults().stop_api_server();
        wait(600).await;
        let reason = check.run().expect_err("it is stopped");
        assert!(reason.starts_with("the API server has been unreachable for the manager for 600 s: "), "{reason}");
        assert!(reason.ends_with("connection lost"), "{reason}");
        assert_eq!(caches.run(), Ok(()), "one reason is enough");
        assert!(live(&manager.handle, &[]).iter().all(|check| check.run().is_ok()), "a restart does not cure it");
        manager.sandbox.faults().end_outage();
        wait(3).await;
        assert_eq!((check.run(), caches.run()), (Ok(()), Ok(())));
    }
}
