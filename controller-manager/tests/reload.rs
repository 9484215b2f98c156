//! Settings that change while the binary runs.

#![cfg(feature = "builtin")]

mod support;

use kcm_sandbox_apiserver::Sandbox;
use rustix::process::Signal;
use support::program::{Folder, Process};
use support::server::Server;

const HEAD: &str =
    "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n";

/// Logged at the end from `-v=4` on.
const AT_4: &str = "\"Stopping stage\"";

#[tokio::test]
async fn a_signal_and_a_changed_file_apply_settings_and_a_bad_file_changes_nothing() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let write = |body: &str| folder.file("kcm.yaml", &format!("{HEAD}{body}"));
    let file = write("logging: {verbosity: 0}\n");
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let program = env!("CARGO_BIN_EXE_kube-controller-manager");
    let mut manager = Process::start(program, &["--leader-elect=false", "--config", &file, &kubeconfig]);
    manager.says("\"Started controller\"").await;

    write("logging: {verbosity: 4}\ngeneric: {minResyncPeriod: 1h, clientConnection: {qps: 50}}\n");
    manager.signal(Signal::HUP);
    manager.says("\"Reloaded the configuration\" applied=\"Logs,Limits\"").await;
    let restart = manager.says("take effect at the next start only").await;
    assert!(restart.ends_with("settings=\"--min-resync-period\""), "{restart}");

    manager.expect_error("Cannot reload the configuration; the settings in use stay as they are");
    write("logging: {verbosity: much}\n");
    manager.signal(Signal::HUP);
    let refused = manager.says("Cannot reload the configuration").await;
    assert!(refused.contains("kcm.yaml:3:22: Logging.verbosity is much, expected a whole number"), "{refused}");

    // Without a signal.
    write(
        "logging: {verbosity: 5}\nreplicaSetController: {concurrentRSSyncs: 9}\n\
         generic: {clientConnection: {qps: 50}, controllers: ['*', '-deployment']}\n",
    );
    manager.says("\"Reloaded the configuration\" applied=\"Logs,Controllers,Workers\"").await;
    manager.says("\"Stopping controller, as it is disabled now\" controller=\"deployment-controller\"").await;
    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains(AT_4), "{}", ended.stderr);
}
