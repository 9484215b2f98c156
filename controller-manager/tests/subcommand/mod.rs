//! The sub-command `sandbox` in a folder of its own.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::fs;
use std::process::Stdio;

use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::support::program::{Ended, Folder, Process, run_in};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

/// Pods that need no time.
pub(crate) const QUICK: &str = "pods:\n- image: '*.0'\n  do: pull=0s\n- do: start=0s ready=0s stop=0s\n";

/// Runs `sandbox` with these arguments to its end.
pub(crate) fn sandbox(folder: &Folder, arguments: &[&str]) -> Ended {
    run_in(folder, PROGRAM, &[&["sandbox"], arguments].concat())
}

/// Starts `sandbox` with these arguments, and waits until it says how to end it.
pub(crate) async fn started(folder: &Folder, arguments: &[&str]) -> Process {
    let mut process = start(folder, arguments);
    process.prints("Ctrl-C ends it").await;
    process
}

/// Starts `sandbox` with these arguments; its standard input is a pipe.
pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Process {
    Process::start_with(PROGRAM, &[&["sandbox"], arguments].concat(), |command| {
        command.current_dir(folder).stdin(Stdio::piped());
    })
}

/// Starts `sandbox` with these arguments; the port of its manager is a free one, as without any setting.
pub(crate) fn start_with_port(folder: &Folder, arguments: &[&str]) -> Process {
    Process::start_with(PROGRAM, &[&["sandbox", "--socket="], arguments].concat(), |command| {
        command.current_dir(folder).stdin(Stdio::piped()).env_remove("KCM_SECURE_PORT");
    })
}

/// A client that knows nothing but the kubeconfig.
pub(crate) async fn client(folder: &Folder) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(folder.path("sandbox.kubeconfig")).expect("it must be a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("it must be complete");
    kube::Client::try_from(config).expect("it must be usable")
}

/// Names of the files in a folder.
pub(crate) fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
