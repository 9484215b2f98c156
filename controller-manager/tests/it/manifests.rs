//! The command lines of other projects' manifests start this program unchanged.
//!
//! Each file of `data/manifests` has the arguments of one manifest, a line each, and their source.

#![cfg(feature = "builtin")]

use std::fs;
use std::path::Path;

use crate::support::program::run;

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

fn manifest(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/manifests");
    let text = fs::read_to_string(folder.join(name)).expect("the manifest can be read");
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Starts as the manifest says and is stopped by nothing but the kubeconfig, which is not there; returns the warnings.
fn warnings(name: &str) -> Vec<String> {
    let mut arguments = manifest(name);
    assert!(arguments.len() > 10, "{name} has arguments");
    let kubeconfig = arguments.iter().find_map(|argument| argument.strip_prefix("--kubeconfig=")).expect("it has one");
    let refusal = format!("the kubeconfig {kubeconfig:?} does not exist: check the path given with --kubeconfig");
    // Another process may have the port of the manifest.
    arguments.push(format!("--secure-port={}", free_port()));
    let ended = run(MANAGER, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ended.refusals(), [refusal], "{name}");
    ended.warnings().into_iter().map(str::to_owned).collect()
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("0.0.0.0", 0)).expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn names_no_missing_controller(warnings: &[String]) {
    let is_missing = |warning: &String| warning.contains("part of this program");
    assert_eq!(warnings.iter().find(|warning| is_missing(warning)), None);
}

#[test]
fn the_manifest_of_kubeadm_starts_us() {
    assert_eq!(warnings("kubeadm.txt"), [""; 0]);
}

#[test]
fn the_manifest_of_kops_starts_us() {
    names_no_missing_controller(&warnings("kops.txt"));
}

#[test]
fn the_arguments_of_k3s_start_us() {
    names_no_missing_controller(&warnings("k3s.txt"));
}

#[test]
fn the_manifest_of_gardener_starts_us() {
    names_no_missing_controller(&warnings("gardener.txt"));
}
