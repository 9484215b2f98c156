//! Sources of settings: the table's defaults, a file, variables and flags.

#![cfg(feature = "builtin")]

use std::collections::BTreeMap;

use crate::support::program::{Ended, Folder, run, run_with};

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

fn effective(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    run_with(MANAGER, &[&["config", "effective"], arguments].concat(), variables)
}

const HEAD: &str =
    "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n";

#[test]
fn without_sources_the_defaults_are_upstreams() {
    let ended = effective(&[], &[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines = ended.stdout.lines().map(|line| line.trim_end_matches(" (No effect yet.)"));
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found: BTreeMap<&str, Vec<&str>> = lines.map(|words| (words[0], words[1..].to_vec())).collect();
    let flags = include_str!("../../../config/tests/data/flags.tsv").lines().skip(1);
    let flags: Vec<Vec<&str>> = flags.map(|line| line.split('\t').collect()).collect();
    for fields in flags.iter().filter(|fields| fields[0] != "Global") {
        let default = fields[4].trim_start_matches('[').trim_end_matches(']');
        let default = if default.is_empty() { "\"\"" } else { default };
        assert_eq!(found.get(&*format!("--{}", fields[1])), Some(&vec![default, "default"]), "--{}", fields[1]);
    }
    assert!(found.values().all(|words| words.last() == Some(&"default")), "{found:?}");
}

#[test]
fn flags_override_variables_and_variables_the_file() {
    let folder = Folder::new();
    let file = folder.file(
        "kcm.yaml",
        &format!(
            "{HEAD}Generic:\n  ClientConnection:\n    qps: 1\n    burst: 2\n  LeaderElection: {{leaderElect: false}}\n\
             replicaSetController:\n  concurrentRSSyncs: 3\n"
        ),
    );
    let variables = [("KCM_CONFIG", file.as_str()), ("KCM_KUBE_API_QPS", "10"), ("KCM_KUBE_API_BURST", "20")];
    let ended = effective(&["--kube-api-qps=100", "--controllers", "-job,*"], &variables);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let stdout = ended.stdout.replace(&file, "FILE");
    let lines = stdout.lines().map(|line| line.trim_end_matches(" (No effect yet.)"));
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let lines: Vec<Vec<&str>> = lines.filter(|words| words.last() != Some(&"default")).collect();
    assert_eq!(
        lines,
        [
            ["--concurrent-replicaset-syncs", "3", "FILE:9:3"],
            ["--config", "FILE", "KCM_CONFIG"],
            ["--controllers", "-job,*", "--controllers"],
            ["--kube-api-burst", "20", "KCM_KUBE_API_BURST"],
            ["--kube-api-qps", "100", "--kube-api-qps"],
            ["--leader-elect", "false", "FILE:7:20"],
        ]
    );
}

#[test]
fn json_is_read_as_yaml_is() {
    let folder = Folder::new();
    let file = folder.file(
        "kcm.json",
        r#"{
  "kind": "KubeControllerManagerConfiguration",
  "apiVersion": "kubecontrollermanager.config.k8s.io/v1alpha1",
  "replicaSetController": { "concurrentRSSyncs": 7 }
}"#,
    );
    let stdout = effective(&["--config", &file], &[]).stdout;
    let line = stdout.lines().find(|line| line.contains("replicaset")).expect("it is a flag");
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        ["--concurrent-replicaset-syncs", "7", &format!("{file}:4:29")]
    );
}

#[test]
fn mistakes_of_all_sources_are_reported_at_once_with_their_places() {
    let folder = Folder::new();
    let file = folder.file(
        "kcm.yaml",
        &format!(
            "{HEAD}ReplicaSetController:\n  concurrentRSSync: 3\nGeneric:\n  Controllers: replicaset\n  Adress: 0.0.0.0\n"
        ),
    );
    let ended = run_with(MANAGER, &["--config", &file, "--v=much"], &[("KCM_KUBE_API_BRUST", "1")]);
    assert_eq!(
        ended.refusals().iter().map(|refusal| refusal.replace(&file, "FILE")).collect::<Vec<_>>(),
        [
            "FILE:4:3: unknown key concurrentRSSync in ReplicaSetController; did you mean concurrentRSSyncs?",
            "FILE:6:16: Generic.Controllers is replicaset, \
         expected a list of strings (quoted if they look like another type)",
            "FILE:7:3: unknown key Adress in Generic; did you mean Address?",
            "KCM_KUBE_API_BRUST: unknown variable; did you mean KCM_KUBE_API_BURST?",
            "--v is \"much\", expected a whole number from -2147483648 to 2147483647",
        ]
    );
}

#[test]
fn a_missing_file_is_refused_with_the_flag_that_names_it() {
    let ended = run(MANAGER, &["--config=/nowhere/kcm.yaml"]);
    assert_eq!(
        ended.refusals(),
        [
            "/nowhere/kcm.yaml: cannot read the configuration file: No such file or directory (os error 2) (named by --config): check the path"
        ]
    );
}

#[test]
fn an_ignored_variable_is_warned_of() {
    let arguments = ["--leader-elect=false", "--controllers=replicaset"];
    let ended = run_with(MANAGER, &arguments, &[("KCM_SERVICE_HOST", "10.0.0.1")]);
    let [warning] = ended.warnings()[..] else { panic!("{}", ended.stderr) };
    assert!(warning.ends_with("] KCM_SERVICE_HOST: no setting has this variable, it is ignored"), "{warning}");
}
