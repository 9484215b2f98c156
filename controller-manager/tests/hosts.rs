//! A host with controllers that fail or keep the thread busy: this program is the host as well as the test of it.

mod support;

use std::process::{Command, ExitCode};
use std::time::Duration;

use futures::FutureExt as _;
use kcm_controller_manager::Host;
use kcm_framework::{ControllerDescriptor, Loops, inventory};
use kcm_sandbox_apiserver::{LEASES, ObjectKey, Sandbox};
use libtest_mimic::{Arguments, Trial};
use support::program::{Folder, Process};
use support::server::Server;

/// The variable that makes this program the host.
const IS_HOST: &str = "THIS_IS_THE_HOST";

/// The variable that sets the times for which the thread of the host's controllers may be blocked: in milliseconds, until it
/// is unhealthy and until it ends.
const LIMITS: &str = "LIMITS_OF_THE_HOST";

/// Time for which the busy controller lets nothing else run on its thread: longer than the lease that is kept
/// meanwhile.
const BUSY: Duration = Duration::from_secs(8);

const FAILING: ControllerDescriptor =
    ControllerDescriptor::new("failing-controller", |_| Err("there is no quota".into())).off_by_default();

const PANICKING: ControllerDescriptor = ControllerDescriptor::new("panicking-controller", |_| {
    Ok(Loops::new().task("panics", |_| async { panic!("as the test wants it") }.boxed()))
})
.off_by_default();

const BUSY_CONTROLLER: ControllerDescriptor = ControllerDescriptor::new("busy-controller", |_| {
    Ok(Loops::new().task("busy", |cancel| {
        async move {
            #[expect(clippy::disallowed_methods, reason = "it is to keep the thread busy")]
            std::thread::sleep(BUSY);
            tracing::info!("Was busy");
            cancel.cancelled().await;
            Ok(())
        }
        .boxed()
    }))
})
.off_by_default();

const BLOCKED_CONTROLLER: ControllerDescriptor = ControllerDescriptor::new("blocked-controller", |_| {
    Ok(Loops::new().task("blocked", |_| {
        async move {
            tracing::info!("Is blocked");
            let (_kept, never) = std::sync::mpsc::channel::<()>();
            never.recv()?;
            Ok(())
        }
        .boxed()
    }))
})
.off_by_default();

inventory::submit!(BLOCKED_CONTROLLER);
inventory::submit!(FAILING);
inventory::submit!(PANICKING);
inventory::submit!(BUSY_CONTROLLER);

fn main() -> ExitCode {
    if std::env::var_os(IS_HOST).is_some() {
        return match std::env::var(LIMITS) {
            Ok(limits) => {
                let millis = |text: &str| Duration::from_millis(text.parse().expect("it is a number"));
                let (unhealthy, exits) = limits.split_once(' ').expect("there are two limits");
                Host::default().main_thread_limits(millis(unhealthy), millis(exits)).main()
            }
            Err(_) => Host::default().main(),
        };
    }
    let tests = vec![
        trial(
            "a_controller_that_fails_ends_the_process_with_code_4",
            a_controller_that_fails_ends_the_process_with_code_4,
        ),
        trial(
            "a_controller_that_fails_is_started_again_by_default",
            a_controller_that_fails_is_started_again_by_default,
        ),
        trial(
            "a_thread_that_is_busy_for_longer_than_the_lease_does_not_lose_it",
            a_thread_that_is_busy_for_longer_than_the_lease_does_not_lose_it,
        ),
        trial(
            "a_thread_that_is_blocked_for_ever_loses_the_lease_and_ends_the_process_with_code_3",
            a_thread_that_is_blocked_for_ever_loses_the_lease_and_ends_the_process_with_code_3,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// A test on a runtime of its own. A panic is its failure.
fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(test());
        Ok(())
    })
}

fn start(server: &Server, folder: &Folder, arguments: &[&str]) -> Process {
    start_with(server, folder, arguments, &[])
}

fn start_with(server: &Server, folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
    let program = std::env::current_exe().expect("this program has a path");
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let as_host = |command: &mut Command| {
        command.env(IS_HOST, "1").envs(variables.iter().copied());
    };
    Process::start_with(&program.display().to_string(), &[arguments, &[&kubeconfig]].concat(), as_host)
}

async fn a_controller_that_fails_ends_the_process_with_code_4() {
    for (controller, error) in [
        ("failing-controller", "its initialization: there is no quota"),
        ("panicking-controller", "panics: panicked: as the test wants it"),
    ] {
        let (server, folder) = (Server::start(Sandbox::default()).await, Folder::new());
        let controllers = format!("--controllers={controller}");
        let mut manager = start(&server, &folder, &["--exit-on-controller-failure", &controllers]);
        manager.expect_error("Controller failed");
        manager.expect_error("panicked at");
        let ended = manager.ended().await;
        assert_eq!(ended.code, Some(4), "{}", ended.stderr);
        assert_eq!(ended.errors(), [format!("the controller {controller} failed in {error}")]);
        let lease = ObjectKey::namespaced("kube-system", "kube-controller-manager");
        let holder = server.sandbox.get(&LEASES, &lease).map(|lease| lease["spec"]["holderIdentity"].clone());
        assert!(holder.is_none_or(|holder| holder == ""), "the lease is released");
    }
}

async fn a_controller_that_fails_is_started_again_by_default() {
    let (server, folder) = (Server::start(Sandbox::default()).await, Folder::new());
    let mut manager = start(&server, &folder, &["--controllers=failing-controller", "--leader-elect=false"]);
    manager.expect_error("Controller failed; restarting it with back-off");
    for _ in 0..2 {
        manager.says("Controller failed; restarting it with back-off").await;
    }
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}

async fn a_thread_that_is_busy_for_longer_than_the_lease_does_not_lose_it() {
    let (server, folder) = (Server::start(Sandbox::default()).await, Folder::new());
    let periods =
        ["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s", "--leader-elect-retry-period=500ms"];
    let arguments = [&["--controllers=busy-controller"], periods.as_slice()].concat();
    let mut manager = start(&server, &folder, &arguments);
    manager.says("Was busy").await;
    // Events that the thread missed are handled now: a lost lease would end the process.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(manager.is_running());
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}

async fn a_thread_that_is_blocked_for_ever_loses_the_lease_and_ends_the_process_with_code_3() {
    let (server, folder) = (Server::start(Sandbox::default()).await, Folder::new());
    let arguments = ["--controllers=blocked-controller", "--leader-elect-retry-period=200ms"];
    let mut manager = start_with(&server, &folder, &arguments, &[(LIMITS, "500 1000")]);
    manager.expect_error("The thread of the controllers is blocked; ending the process");
    manager.says("Is blocked").await;
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("The thread of the controllers is blocked"), "{}", ended.stderr);
    let lease = ObjectKey::namespaced("kube-system", "kube-controller-manager");
    let lease = server.sandbox.get(&LEASES, &lease).expect("it was acquired");
    assert_ne!(lease["spec"]["holderIdentity"], "", "writes may be under way: the lease expires");
}
