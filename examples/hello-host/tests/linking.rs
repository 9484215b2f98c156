//! Tests which plugins are linked into which host, and that they run.
//!
//! Only crates that a host names are linked: the host library brings no controllers.

#[path = "../../../controller-manager/tests/support/mod.rs"]
mod support;

use kcm_sandbox_apiserver::{NAMESPACES, Sandbox};
use support::program::{Ended, Folder, Process, run};
use support::server::Server;

const HOST: &str = env!("CARGO_BIN_EXE_hello-host");
const FORGOTTEN: &str = env!("CARGO_BIN_EXE_hello-forgotten");

/// A setting of the plugin, and one of a built-in controller.
const PLUGIN: &str = "--hello-greeting";
#[cfg(feature = "builtin")]
const BUILT_IN: &str = "--concurrent-replicaset-syncs";

fn settings(program: &str) -> Ended {
    run(program, &["config", "effective"])
}

#[test]
fn a_plugin_that_is_named_brings_its_settings() {
    let settings = settings(HOST);
    assert_eq!(settings.code, Some(0));
    let greeting = settings.stdout.lines().find(|line| line.starts_with(PLUGIN)).expect("the flag must be there");
    assert_eq!(greeting.split_whitespace().collect::<Vec<_>>(), [PLUGIN, "hello", "default"]);
    assert!(run(HOST, &["--help"]).stdout.starts_with("Usage: hello-host [FLAGS]"));
}

#[test]
fn a_plugin_that_is_never_named_registers_nothing() {
    assert_eq!(
        settings(FORGOTTEN).refusals(),
        ["no controller is linked into this binary: a crate that is only a dependency is not linked; \
          name it once in your main.rs, as in `use my_controller as _;`"]
    );
}

#[cfg(feature = "builtin")]
#[test]
fn a_plugin_beside_the_built_in_controllers_brings_its_settings_too() {
    let settings = settings(env!("CARGO_BIN_EXE_hello-beside-builtin"));
    assert_eq!(settings.code, Some(0));
    assert!(settings.stdout.contains(PLUGIN) && settings.stdout.contains(BUILT_IN), "{}", settings.stdout);
}

#[test]
fn without_the_built_in_controllers_they_cannot_be_asked_for() {
    assert_eq!(
        run(HOST, &["--controllers=hello,replicaset,helo"]).refusals(),
        [
            "--controllers: the controller \"replicaset-controller\" is not part of this binary yet: \
             let another controller manager run it, and leave it out here",
            "--controllers: \"helo\" is not in the list of known controllers; did you mean \"hello\"?",
        ]
    );
}

#[test]
fn the_built_in_controllers_may_be_missing_with_a_warning() {
    let arguments = ["--allow-missing-controllers", "--leader-elect=false", "--controllers=hello,replicaset"];
    let ended = run(HOST, &arguments);
    let warning = "--controllers: the controller replicaset-controller is not part of this program: let another controller \
                   manager run it";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    let unknown = run(HOST, &["--allow-missing-controllers", "--controllers=helo"]);
    assert_eq!(
        unknown.refusals(),
        ["--controllers: \"helo\" is not in the list of known controllers; did you mean \"hello\"?"]
    );
}

#[tokio::test]
async fn the_host_runs_its_controller_with_its_flag() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let mut host =
        Process::start(HOST, &["--leader-elect=false", "--controllers=hello", "--hello-greeting=servus", &kubeconfig]);
    host.says("\"Started controller\" controller=\"hello-controller\"").await;
    every_namespace_has(&server, "example.com/greeting", "servus").await;
    host.terminate();
    assert_eq!(host.ended().await.code, Some(0));
}

async fn every_namespace_has(server: &Server, label: &str, value: &str) {
    let greeted = async {
        let labels = || server.sandbox.list(&NAMESPACES, None).into_iter().map(|it| it["metadata"]["labels"].clone());
        while !labels().all(|labels| labels[label] == value) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), greeted).await.expect("every namespace must be greeted");
}

/// As the first section of docs/plugins.md runs it, which shows a line of its log.
#[tokio::test]
async fn the_program_of_the_guide_runs_as_it_stands_there() {
    const GUIDE: &str = include_str!("../../../docs/plugins.md");
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let mut host = Process::start(env!("CARGO_BIN_EXE_greeter"), &["--leader-elect=false", &kubeconfig]);
    let line = "\"Started controller\" controller=\"greeter-controller\"";
    assert!(GUIDE.contains(line), "the guide shows {line}");
    host.says(line).await;
    every_namespace_has(&server, "greeting", "hello").await;
    host.terminate();
    assert_eq!(host.ended().await.code, Some(0));
}
