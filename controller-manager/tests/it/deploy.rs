//! The deployments in `deploy/`: each file is valid, is applied, and its command line starts the program.

#![cfg(feature = "builtin")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::program::{Folder, run};
use kcm_sandbox_apiserver::{CONFIG_MAPS, DEPLOYMENTS, ObjectKey, PODS, Sandbox};
use serde_json::{Value, json};

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(deploy(path)).expect("the file is there")
}

/// The API server after it has taken all manifests of a folder.
fn applied(folder: &str) -> Sandbox {
    let sandbox = Sandbox::default();
    let loaded = sandbox.load(&deploy(folder));
    assert!(loaded.is_ok_and(|count| count > 0), "{folder}");
    sandbox
}

fn in_kube_system(name: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-system", name)
}

/// The arguments of the container, without the program.
fn arguments(container: &Value) -> Vec<String> {
    let words = container["command"].as_array().into_iter().chain(container["args"].as_array()).flatten();
    let words = words.map(|word| word.as_str().expect("arguments are strings").to_owned());
    words.filter(|word| word != "kube-controller-manager").collect()
}

/// Starts the program with these arguments; it is stopped by nothing but the API server, which is not there.
fn starts(arguments: &[String]) {
    let ended = run(MANAGER, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let [refusal] = ended.refusals()[..] else { panic!("{}", ended.stderr) };
    let is_expected = refusal.contains("--kubeconfig") || refusal.contains("kubeconfig");
    assert!(is_expected, "{refusal}");
}

/// The same arguments with an existing configuration file, and without a port, which another process may have bound.
fn with_file(arguments: Vec<String>, file: &str) -> Vec<String> {
    let is_replaced = |word: &String| word.starts_with("--config=") || word.starts_with("--kubeconfig=");
    let others = arguments.into_iter().filter(|word| !is_replaced(word));
    let own = [format!("--config={file}"), "--kubeconfig=/nowhere/kubeconfig".to_owned(), "--secure-port=0".to_owned()];
    others.chain(own).collect()
}

#[tokio::test]
async fn the_deployment_beside_upstream_is_applied_and_its_command_line_starts() {
    let sandbox = applied("kubernetes");
    let deployment = sandbox.get(&DEPLOYMENTS, &in_kube_system("kcm")).expect("there is a deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 65532, "the image runs as root");
    assert_eq!(pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
    let map = sandbox.get(&CONFIG_MAPS, &in_kube_system("kcm")).expect("there is a config map");
    let folder = Folder::new();
    let file = folder.file("kcm.yaml", map["data"]["kcm.yaml"].as_str().expect("it has the file"));
    starts(&with_file(arguments(&pod["containers"][0]), &file));
    let effective = run(MANAGER, &["config", "effective", "--config", &file]).stdout;
    let lease = effective.lines().find(|line| line.starts_with("--leader-elect-resource-name")).unwrap_or_default();
    assert!(lease.contains("kcm"), "a lease of its own: {lease}");
}

#[tokio::test]
async fn the_static_pod_has_the_flags_of_kubeadm_and_starts() {
    let sandbox = applied("kubeadm");
    let pod = sandbox.get(&PODS, &in_kube_system("kube-controller-manager")).expect("there is a pod");
    let given = arguments(&pod["spec"]["containers"][0]);
    starts(&[given.clone(), vec!["--secure-port=0".to_owned()]].concat());
    let known = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/manifests/kubeadm.txt"));
    let known = known.expect("the file is there");
    assert_eq!(given, known.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>());
    let security = json!({ "seccompProfile": { "type": "RuntimeDefault" } });
    assert_eq!(pod["spec"]["securityContext"], security, "as kubeadm's, without a user");
    assert!(pod["spec"]["containers"][0].get("securityContext").is_none());
}

#[test]
fn g1_the_command_line_of_kubeadm_with_an_external_authority_starts() {
    let text = text("kubeadm/kube-controller-manager.yaml");
    let words = text.lines().filter_map(|line| line.trim_start().strip_prefix("- --"));
    let without_files = words.map(|word| match word.split_once('=') {
        Some((name @ ("cluster-signing-cert-file" | "cluster-signing-key-file"), _)) => format!("--{name}="),
        Some(_) | None => format!("--{word}"),
    });
    let given: Vec<String> = without_files.chain(["--secure-port=0".to_owned()]).collect();
    assert_eq!(given.iter().filter(|word| word.ends_with("-file=")).count(), 2, "{given:?}");
    starts(&given);
}

#[test]
fn the_unit_starts_the_program_with_a_file_that_is_valid() {
    let unit = text("systemd/kube-controller-manager.service");
    let sections: Vec<&str> = unit.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(sections, ["[Unit]", "[Service]", "[Install]"]);
    let settings = unit.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    assert!(settings.clone().all(|line| line.contains('=')));
    let start = settings.clone().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let words: Vec<String> = start.split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "/usr/local/bin/kube-controller-manager");
    assert!(start.contains("--kubeconfig=${CREDENTIALS_DIRECTORY}/kubeconfig"));
    assert!(settings.clone().any(|line| line.starts_with("LoadCredential=kubeconfig:")));
    let file = deploy("systemd/kcm.yaml").display().to_string();
    starts(&with_file(words[1..].to_vec(), &file));
}

#[test]
fn the_image_is_one_binary_without_a_shell_that_runs_as_root_by_default() {
    let file = text("Containerfile");
    let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with('#')).collect();
    let last = lines.iter().rposition(|line| line.starts_with("FROM ")).expect("there are stages");
    let (build, image) = lines.split_at(last);
    assert_eq!(image[0], "FROM scratch");
    assert!(image.iter().all(|line| !line.starts_with("RUN ")), "there is no shell to run it");
    assert_eq!(image.iter().filter(|line| line.starts_with("COPY ")).count(), 1);
    assert!(image.contains(&"USER 0:0"), "the manifest of kubeadm names no user");
    let entry = "/usr/local/bin/kube-controller-manager";
    assert!(image.contains(&format!("ENTRYPOINT [\"{entry}\"]").as_str()));
    assert!(image.iter().any(|line| line.starts_with("COPY ") && line.ends_with(entry)));
    // Every file that the build names exists.
    let build = build.join("\n");
    let toolchain = fs::read_to_string(deploy("../rust-toolchain.toml")).expect("the file is there");
    let version = build.split_once("library/rust:").and_then(|(_, rest)| rest.split_once("-alpine")).map(|(it, _)| it);
    assert!(version.is_some_and(|version| toolchain.contains(&format!("\"{version}"))), "{version:?}: {toolchain}");
    let manifest = fs::read_to_string(deploy("../Cargo.toml")).expect("the file is there");
    assert!(build.contains("--profile shipped") && manifest.contains("[profile.shipped]"));
    let package = fs::read_to_string(deploy("../controller-manager/Cargo.toml")).expect("the file is there");
    let features =
        build.split_once("ARG FEATURES=").and_then(|(_, rest)| rest.lines().next()).expect("it has features");
    for feature in features.split(',') {
        assert!(package.contains(&format!("\n{feature} = [")), "{feature}");
    }
    // `cargo shipped` builds it.
    let cargo = fs::read_to_string(deploy("../.cargo/config.toml")).expect("the file is there");
    let shipped = cargo.lines().find_map(|line| line.strip_prefix("shipped = ")).expect("it has the command");
    let words = shipped.split('"').filter(|word| word.starts_with("--config=")).map(|word| &word["--config=".len()..]);
    let configurations: Vec<&str> = words.collect();
    assert!(!configurations.is_empty());
    for configuration in configurations {
        assert!(build.contains(&format!("--config \"{configuration}\"")), "{configuration}");
    }
    assert!(build.contains("--locked") && build.contains("--package kcm-controller-manager"), "{build}");
    // The image copies the output of the build, and the build sees every file that it reads.
    let binary = "/target/shipped/kube-controller-manager";
    assert!(build.contains(&binary[1..]), "{build}");
    assert!(image.iter().any(|line| line.starts_with("COPY --from=build /source") && line.contains(binary)));
    let ignored = fs::read_to_string(deploy("../.containerignore")).expect("the file is there");
    let needed = [".cargo", "Cargo.lock", "Cargo.toml", "controller-manager", "rust-toolchain.toml", "*"];
    assert!(ignored.lines().all(|line| !needed.contains(&line.trim_matches('/'))), "{ignored}");
}
