//! The README, compared with the records, the code of the examples, and the tests that run its commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use kcm_config::KUBERNETES_VERSION;
use kcm_controller_manager::{UPSTREAM, UpstreamController};

use super::{between, check_file, linked, root, texts};

const README: &str = "README.md";

/// The README fits on a few screens.
const LINES: usize = 150;

#[test]
fn the_readme_says_what_code_and_records_say() {
    let old = fs::read_to_string(root().join(README)).expect("the README can be read");
    let mut new = between(&old, README, "status", &status());
    new = between(&new, README, "areas", &areas());
    let (program, test) = greeter();
    new = with_code(&new, &[program, test]);
    check_file(README, &old, &new);
    assert!(new.lines().count() <= LINES, "README has {} lines, more than {LINES}", new.lines().count());
}

/// The number of controllers that work, and the results of their tests against a real API server.
fn status() -> String {
    let works = UPSTREAM.iter().filter(|it| linked().find(it.names().0).is_some()).count();
    let results = rows("xtask/data/upstream-tests.tsv").skip(1);
    let mut by_result = BTreeMap::<String, usize>::new();
    for row in results {
        let result = row.split('\t').nth(2).expect("a row has a result").to_owned();
        *by_result.entry(result).or_default() += 1;
    }
    let of = |result: &str| by_result.get(result).copied().unwrap_or_default();
    let tests = by_result.values().sum::<usize>() - of("without controller");
    let scenarios = rows("e2e/peer-verified.tsv").count() + scripts().len();
    format!(
        "**Status:** {works} of {} controllers work, as in Kubernetes {KUBERNETES_VERSION}. **Proof:** {} of {tests} of \
         Kubernetes' own integration tests\npass against this binary ({} of the others cannot judge a separate process, or \
         upstream skips them); {scenarios} scenarios on a\nreal control plane pass with upstream's manager and with this \
         one; in {} the two take over from each other without a difference.",
        UPSTREAM.len(),
        of("passes"),
        of("cannot judge"),
        takeovers().len(),
    )
}

/// The rows of a record, without comments.
fn rows(file: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let rows: Vec<String> =
        text.lines().filter(|row| !row.starts_with('#') && !row.is_empty()).map(str::to_owned).collect();
    rows.into_iter()
}

/// The scripts of the e2e suite, each of which passes with both managers.
fn scripts() -> BTreeSet<String> {
    let scripts = fs::read_dir(root().join("e2e/scenarios/scripts")).expect("the scripts have a folder");
    scripts.map(|script| format!("script {}", script.expect("the folder can be read").file_name().display())).collect()
}

/// The scenarios of the e2e suite in which one manager takes over from the other: every script, and those that their
/// names show.
fn takeovers() -> BTreeSet<String> {
    const WORDS: [&str; 5] = ["takes_over", "take_over", "taken_over", "handed_over", "gives_back"];
    let mut found = scripts();
    for text in texts(&root().join("e2e")) {
        let is_of_name = |letter: char| letter.is_ascii_lowercase() || "-_/".contains(letter);
        for word in text.split(|letter| !is_of_name(letter)) {
            let name = word.split_once('/').filter(|(area, _)| !area.is_empty());
            if name.is_some_and(|(_, name)| !name.contains('/') && WORDS.iter().any(|word| name.contains(word))) {
                found.insert(word.to_owned());
            }
        }
    }
    found
}

/// The areas by the names that operators look for, and their controllers without `-controller`.
const AREAS: [(&str, &[&str]); 6] = [
    (
        "Workloads",
        &[
            "cronjob",
            "daemonset",
            "deployment",
            "disruption",
            "job",
            "pod-garbage-collector",
            "podgroup-protection",
            "replicaset",
            "replicationcontroller",
            "statefulset",
            "ttl-after-finished",
        ],
    ),
    ("Services", &["endpoints", "endpointslice", "endpointslice-mirroring", "service-cidr"]),
    (
        "Autoscaling, quotas, garbage",
        &[
            "garbage-collector",
            "horizontal-pod-autoscaler",
            "namespace",
            "resourcequota",
            "storage-version-migrator",
            "storageversion-garbage-collector",
            "validatingadmissionpolicy-status",
        ],
    ),
    (
        "Accounts, certificates",
        &[
            "bootstrap-signer",
            "certificatesigningrequest-approving",
            "certificatesigningrequest-cleaner",
            "certificatesigningrequest-signing",
            "clusterrole-aggregation",
            "kube-apiserver-serving-clustertrustbundle-publisher",
            "legacy-serviceaccount-token-cleaner",
            "podcertificaterequest-cleaner",
            "root-ca-certificate-publisher",
            "serviceaccount",
            "serviceaccount-token",
            "token-cleaner",
        ],
    ),
    (
        "Nodes, devices",
        &[
            "device-taint-eviction",
            "node-ipam",
            "node-lifecycle",
            "resourceclaim",
            "resourcepoolstatusrequest",
            "taint-eviction",
            "ttl",
        ],
    ),
    (
        "Volumes",
        &[
            "ephemeral-volume",
            "persistentvolume-attach-detach",
            "persistentvolume-binder",
            "persistentvolume-expander",
            "persistentvolume-protection",
            "persistentvolumeclaim-protection",
            "selinux-warning",
            "volumeattributesclass-protection",
        ],
    ),
];

fn areas() -> String {
    let mut table = String::from("| area | works | which |\n| --- | --- | --- |\n");
    for (area, names) in AREAS {
        let works = |name: &&&str| linked().find(&format!("{name}-controller")).is_some();
        let working: Vec<&str> = names.iter().filter(works).copied().collect();
        let which = match working.as_slice() {
            [] => "–".to_owned(),
            working => working.join(", "),
        };
        writeln!(table, "| {area} | {} of {} | {which} |", working.len(), names.len())
            .expect("a string takes everything");
    }
    table
}

#[test]
fn every_controller_of_upstream_is_in_one_area() {
    let mut named: Vec<String> =
        AREAS.iter().flat_map(|(_, names)| names.iter().map(|name| format!("{name}-controller"))).collect();
    named.sort();
    let known: Vec<String> = UPSTREAM.iter().map(UpstreamController::names).map(|(name, _)| name.to_owned()).collect();
    assert_eq!(named, known);
}

/// The program of an example without its page, its `main` and its tests, and the body of the module of its tests.
fn greeter() -> (String, String) {
    let file = root().join("examples/hello-host/src/bin/greeter.rs");
    let source = fs::read_to_string(file).expect("the example is there");
    let (program, tests) = source.split_once("\n#[cfg(test)]\nmod tests {\n").expect("it has tests");
    let (program, _) = program.split_once("\nfn main()").expect("it has a main");
    let (_, program) = program.split_once("\n\n").expect("its page ends with an empty line");
    let (_, test) = tests.split_once("\n    #[tokio::test").expect("it has a test");
    let test = test.trim_end().strip_suffix('}').expect("the module ends").trim_end();
    let test = format!("#[tokio::test{}\n", test.replace("\n    ", "\n"));
    (program.trim_end().to_owned() + "\n", test)
}

/// The page with these blocks of Rust in place of its own.
fn with_code(page: &str, blocks: &[String]) -> String {
    let mut parts = page.split("```rust\n");
    let mut new = parts.next().expect("a split has a first part").to_owned();
    let mut count = 0;
    for part in parts {
        let (_, after) = part.split_once("```\n").expect("a block ends");
        let block = blocks.get(count).expect("README has no other blocks of Rust");
        write!(new, "```rust\n{block}```\n{after}").expect("a string takes everything");
        count += 1;
    }
    assert_eq!(count, blocks.len(), "README shows the program and its test");
    new
}

/// A command of the README, and what runs it: a file or folder, and the text in it that does.
struct Command {
    line: &'static str,
    runs_in: &'static str,
    text: &'static str,
}

const fn command(line: &'static str, runs_in: &'static str, text: &'static str) -> Command {
    Command { line, runs_in, text }
}

const COMMANDS: [Command; 10] = [
    // As a debug build, with the commands for kubectl that it prints.
    command("cargo run --release -- sandbox", "e2e", "host/sandbox_is_toured"),
    command(
        "cargo run --release -- sandbox --demo",
        "controller-manager/tests/it/sandbox.rs",
        "fn the_demo_in_a_pipe_is_lines_and_a_summary(",
    ),
    // The words of the alias, the profile and the features.
    command(
        "cargo shipped",
        "controller-manager/tests/it/deploy.rs",
        "fn the_image_is_one_binary_without_a_shell_that_runs_as_root_by_default(",
    ),
    command(
        "target/shipped/kube-controller-manager --help",
        "controller-manager/tests/it/command_line.rs",
        "fn the_help_has_every_flag_under_its_heading(",
    ),
    command(
        "target/shipped/kube-controller-manager config effective",
        "controller-manager/tests/it/config_command.rs",
        "fn every_setting_says_in_json_where_it_comes_from(",
    ),
    // Without podman: what the build names is there, and what is copied is what the build leaves.
    command(
        "podman build --file deploy/Containerfile --tag registry.example.com/kcm:v1.37.2 .",
        "controller-manager/tests/it/deploy.rs",
        "fn the_image_is_one_binary_without_a_shell_that_runs_as_root_by_default(",
    ),
    command("kubectl apply -f deploy/kubernetes/beside-upstream.yaml", "e2e", "deploy/has_the_rights_that_it_needs"),
    command("kubectl get lease/kcm --namespace=kube-system", "e2e", "get lease/kcm --namespace=kube-system"),
    command("kubectl delete -f deploy/kubernetes/beside-upstream.yaml", "e2e", "delete --namespace=kube-system -f"),
    command("cargo test", "xtask/src/ci.rs", "step::cargo([\"test\", \"--workspace\"])"),
];

#[test]
fn every_command_of_the_readme_is_run_by_a_test() {
    let readme = fs::read_to_string(root().join(README)).expect("the README can be read");
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" # ").next().unwrap_or_default().trim());
    let shown: BTreeSet<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let known: BTreeSet<&str> = COMMANDS.iter().map(|it| it.line).collect();
    assert_eq!(shown, known, "README's commands, and those that a row names");
    let files = fs::read_dir(root().join("deploy/kubernetes")).expect("the folder is there").count();
    assert_eq!(files, 1, "the scenario applies and deletes the folder, README its only file");
    for Command { line, runs_in, text } in COMMANDS {
        let found = texts(&root().join(runs_in)).iter().any(|source| source.contains(text));
        assert!(found, "`{line}`: there is no `{text}` in {runs_in}");
    }
}
