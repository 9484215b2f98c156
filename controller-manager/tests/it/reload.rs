//! Settings that change while the binary runs.

#![cfg(feature = "builtin")]

use std::os::unix::fs::symlink;

use crate::support::program::{Folder, Process};
use crate::support::server::Server;
use kcm_sandbox_apiserver::Sandbox;
use rustix::process::Signal;

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

    manager.expect_error("Cannot reload the configuration; keeping the current settings");
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
    manager.says("\"Stopping controller because it is now disabled\" controller=\"deployment-controller\"").await;
    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains(AT_4), "{}", ended.stderr);
}

/// The kubelet writes a new folder, and renames a link to it over the one of the old folder.
#[tokio::test]
async fn an_updated_config_map_is_read_through_its_links() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let write = |version: &str, body: &str| {
        std::fs::create_dir(folder.path(version)).expect("there must be room for a folder");
        folder.file(&format!("{version}/kcm.yaml"), &format!("{HEAD}{body}"));
        symlink(version, folder.path("..new")).expect("the link is new");
        std::fs::rename(folder.path("..new"), folder.path("..data")).expect("a link can be replaced");
    };
    write("..1", "logging: {verbosity: 0}\n");
    let file = folder.path("kcm.yaml");
    symlink("..data/kcm.yaml", &file).expect("the link is new");
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let flag = format!("--config={}", file.display());
    let program = env!("CARGO_BIN_EXE_kube-controller-manager");
    let mut manager = Process::start(program, &["--leader-elect=false", &flag, &kubeconfig]);
    manager.says("\"Started controller\"").await;
    write("..2", "logging: {verbosity: 4}\n");
    manager.says("\"Reloaded the configuration\" applied=\"Logs\"").await;
    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stderr.contains(AT_4), "{}", ended.stderr);
}
