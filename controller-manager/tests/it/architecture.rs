//! Holds the arrows between crates, and keeps folders of a crate from importing each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Circle, Imports, rust_files};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Package and the packages that it may depend on within the workspace, outside of tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("kcm-workqueue", &[]),
    ("kcm-api", &[]),
    ("kcm-cel", &[]),
    ("kcm-informers", &["kcm-api"]),
    ("kcm-client", &["kcm-api", "kcm-informers"]),
    ("kcm-config", &["kcm-api"]),
    ("kcm-framework", &["kcm-workqueue", "kcm-api", "kcm-informers", "kcm-client", "kcm-config"]),
    (
        "kcm-controllers",
        &[
            "kcm-controllers-autoscaling",
            "kcm-controllers-api-machinery",
            "kcm-controllers-network",
            "kcm-controllers-auth",
            "kcm-controllers-apps",
            "kcm-controllers-node",
            "kcm-controllers-resource",
            "kcm-controllers-storage",
        ],
    ),
    ("kcm-controllers-autoscaling", &["kcm-framework"]),
    ("kcm-controllers-api-machinery", &["kcm-framework", "kcm-cel"]),
    ("kcm-controllers-network", &["kcm-framework"]),
    ("kcm-controllers-auth", &["kcm-framework"]),
    ("kcm-controllers-apps", &["kcm-framework"]),
    ("kcm-controllers-node", &["kcm-framework"]),
    ("kcm-controllers-resource", &["kcm-framework"]),
    ("kcm-controllers-storage", &["kcm-framework"]),
    (
        "kcm-controller-manager",
        &[
            "kcm-workqueue",
            "kcm-api",
            "kcm-informers",
            "kcm-config",
            "kcm-framework",
            "kcm-controllers",
            "kcm-sandbox-cli",
            "kcm-serving",
        ],
    ),
    ("kcm-serving", &["kcm-framework", "kcm-config"]),
    ("kcm-sandbox-apiserver", &["kcm-api"]),
    ("kcm-sandbox-listener", &["kcm-sandbox-apiserver"]),
    ("kcm-sandbox-cluster", &["kcm-api", "kcm-sandbox-apiserver"]),
    ("kcm-sandbox-conformance", &[]),
    (
        "kcm-sandbox-cli",
        &[
            "kcm-framework",
            "kcm-config",
            "kcm-sandbox-apiserver",
            "kcm-sandbox-listener",
            "kcm-sandbox-cluster",
            "kcm-sandbox-conformance",
        ],
    ),
    ("kcm-testing", &["kcm-framework", "kcm-sandbox-apiserver"]),
    ("kcm-simulation", &["kcm-framework", "kcm-sandbox-apiserver", "kcm-testing"]),
    ("kcm-example-hello", &["kcm-framework"]),
    ("kcm-example-hello-host", &["kcm-controller-manager", "kcm-controllers", "kcm-example-hello", "kcm-framework"]),
    ("kcm-example-website", &["kcm-controller-manager", "kcm-framework"]),
    ("kcm-example-website-kube-rs", &["kcm-example-website", "kcm-sandbox-apiserver", "kcm-sandbox-listener"]),
];

/// Crates that a layer must not depend on, even indirectly.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("kcm-workqueue", &["kube", "k8s-openapi", "hyper", "http", "serde_json"]),
    ("kcm-api", &["tokio", "kube", "hyper", "k8s-openapi"]),
    ("kcm-config", &["kube", "hyper", "tokio", "k8s-openapi"]),
    ("kcm-client", &["inventory"]),
    ("kcm-framework", &["kube", "hyper", "rustls"]),
    ("kcm-controllers-autoscaling", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-api-machinery", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-network", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-auth", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-apps", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-node", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-resource", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-controllers-storage", &["kcm-api", "kcm-informers", "kcm-config", "kcm-client", "kube", "hyper"]),
    ("kcm-serving", &["kube", "k8s-openapi"]),
    ("kcm-sandbox-apiserver", &["hyper", "hyper-util", "rcgen", "rustls", "tokio-rustls"]),
];

/// Not published: they may depend on every crate, and none of those above depends on them.
const OUTSIDE: &[&str] = &[
    "kcm-e2e-bench",
    "kcm-e2e-failovers",
    "kcm-e2e-harness",
    "kcm-e2e-scenarios",
    "kcm-simulation-combinations",
    "xtask",
];

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().exec().expect("cargo must describe the workspace")
}

fn workspace(metadata: &Metadata) -> BTreeMap<&str, &Package> {
    metadata.workspace_packages().into_iter().map(|package| (package.name.as_str(), package)).collect()
}

fn normal_dependencies(package: &Package) -> BTreeSet<&str> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    normal.map(|dependency| dependency.name.as_str()).collect()
}

#[test]
fn every_crate_depends_only_on_those_beneath_it() {
    let metadata = metadata();
    let packages = workspace(&metadata);
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).chain(OUTSIDE.iter().copied()).collect();
    assert_eq!(packages.keys().copied().collect::<BTreeSet<_>>(), known, "every crate has its row");

    for (name, allowed) in ARROWS {
        let dependencies = normal_dependencies(packages[name]);
        let within: BTreeSet<&str> = dependencies.into_iter().filter(|name| packages.contains_key(name)).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert!(within.is_subset(&allowed), "{name} depends on {:?}", within.difference(&allowed));
    }
}

#[test]
fn no_layer_names_what_belongs_to_another() {
    let metadata = metadata();
    let packages = workspace(&metadata);
    for (name, forbidden) in FORBIDDEN {
        let dependencies = normal_dependencies(packages[name]);
        for crate_name in *forbidden {
            assert!(!dependencies.contains(crate_name), "{name} depends on {crate_name}");
        }
    }
}

/// Without this, a plugin that is not linked would go unnoticed: the built-in controllers would make up for it.
#[test]
fn a_host_of_ones_own_leaves_the_built_in_controllers_out() {
    let metadata = metadata();
    let host = workspace(&metadata)["kcm-example-hello-host"];
    let manager = host.dependencies.iter().find(|dependency| dependency.name == "kcm-controller-manager");
    let manager = manager.expect("a host depends on the controller manager");
    assert!(!manager.uses_default_features && manager.features.is_empty());
    assert!(!host.features.contains_key("default"));
}

#[test]
fn dependencies_are_declared_once_in_the_workspace() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("a manifest must be readable");
        let own = manifest.lines().filter(|line| line.contains("version = \"") || line.contains("path = \""));
        let own: Vec<&str> = own.filter(|line| !line.trim_start().starts_with(['#', '['])).collect();
        let own: Vec<&str> = own.into_iter().filter(|line| !line.starts_with("path = ")).collect();
        assert!(own.is_empty(), "{} declares {own:?} itself", package.name);
    }
}

/// Crates that are linked in two versions, each with the reason why we cannot help it.
const TWICE: &[(&str, &str)] = &[
    ("base64", "k8s-openapi and kube-client disagree until the next k8s-openapi"),
    ("syn", "only at build time: derive macros move to version 3 one by one"),
];

#[test]
fn one_version_of_each_crate_is_linked() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut arguments =
        vec!["tree", "--offline", "--workspace", "--duplicates", "--edges=normal", "--prefix=none", "--depth=0"];
    // The runtime of kube-rs, which the comparison alone links.
    arguments.push("--exclude=kcm-example-website-kube-rs");
    let tree = std::process::Command::new(cargo).args(arguments).output().expect("cargo must run");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let listed = String::from_utf8(tree.stdout).expect("names of crates must be text");
    // A crate that is built twice with other features has two lines of one version.
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in listed.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    versions.retain(|name, versions| versions.len() > 1 && !TWICE.iter().any(|(excused, _)| excused == name));
    assert!(versions.is_empty(), "two versions of {versions:?}");
}

#[test]
fn no_files_or_folders_of_a_crate_import_each_other_in_a_circle() {
    let metadata = metadata();
    let mut circles = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let sources = package.manifest_path.parent().expect("a manifest lies in a folder").join("src");
        circles.insert(package.name.as_str(), Imports::of_crate(sources.as_std_path()).circles());
    }
    circles.retain(|_, circles| !circles.is_empty());
    assert!(circles.is_empty(), "{circles:#?}");
}

/// Shows how the same is written with kube-rs alone.
const OF_KUBE_RS: &str = "kcm-example-website-kube-rs";

/// The lines of the `select!` in `text` that polls its branches in a random order.
fn unbiased(text: &str) -> Vec<usize> {
    let mut lines = text.lines().enumerate();
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.trim_end().ends_with("select! {") {
            let first = lines.find(|(_, line)| !line.trim_start().starts_with("//"));
            if first.is_none_or(|(_, line)| line.trim() != "biased;") {
                found.push(number + 1);
            }
        } else if line.contains("select! {") {
            found.push(number + 1);
        }
    }
    found
}

#[test]
fn every_select_polls_its_branches_in_a_fixed_order() {
    let metadata = metadata();
    let mut found = Vec::new();
    for package in metadata.workspace_packages() {
        if OUTSIDE.contains(&package.name.as_str()) || package.name.as_str() == OF_KUBE_RS {
            continue;
        }
        let sources = package.manifest_path.parent().expect("a manifest lies in a folder").join("src");
        for file in rust_files(sources.as_std_path()) {
            let text = std::fs::read_to_string(&file).expect("sources are readable");
            found.extend(unbiased(&text).into_iter().map(|line| format!("{}:{line}", file.display())));
        }
    }
    assert!(found.is_empty(), "tokio draws the order by itself, so that two runs with one seed differ: {found:#?}");
}

#[test]
fn a_select_without_a_fixed_order_is_found() {
    let biased = "tokio::select! {\n    // A reason.\n    biased;\n    a => {}\n}\n";
    let random = "tokio::select! {\n    a => {}\n}\n";
    assert_eq!(unbiased(&format!("{biased}{random}{biased}")), [6]);
    assert_eq!(unbiased("tokio::select! { biased; a => {} }\n"), [1], "one line is not the form");
}

#[test]
fn a_circle_between_folders_is_found_through_re_exports() {
    let crate_root = tempfile::tempdir().expect("a folder for the sources");
    for (file, text) in [
        ("lib.rs", "mod store; mod watch; mod apart;\npub use store::Store;\n"),
        ("apart.rs", "use crate::{Store, watch::Watch};\n// crate::store in a comment\n"),
        ("store/mod.rs", "mod index;\npub(crate) use index::Store;\n"),
        ("store/index.rs", "pub struct Store(crate::watch::cursor::Cursor);\n"),
        ("watch/mod.rs", "pub(crate) mod cursor;\nuse super::apart_in_name_only;\n"),
        ("watch/cursor.rs", "pub struct Cursor;\nfn read(store: &crate::Store) {}\n"),
    ] {
        let file = crate_root.path().join(file);
        std::fs::create_dir_all(file.parent().expect("it lies in a folder")).expect("folders can be made");
        std::fs::write(file, text).expect("files can be written");
    }
    let members = vec!["store".to_owned(), "watch".to_owned()];
    assert_eq!(Imports::of_crate(crate_root.path()).circles(), [Circle { folder: String::new(), members }]);
}
