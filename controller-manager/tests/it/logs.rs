//! The log of the binary.

#![cfg(feature = "builtin")]

use crate::support::program::{Ended, Folder, Process, run};
use crate::support::server::{Instead, Server};
use kcm_sandbox_apiserver::{REPLICA_SETS, Sandbox};

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

/// Says that there is no kubeconfig, after everything that is checked before.
fn without_kubeconfig(arguments: &[&str]) -> Ended {
    run(MANAGER, &[&["--leader-elect=false"], arguments].concat())
}

fn flags(ended: &Ended) -> Vec<&str> {
    ended.stderr.lines().filter_map(|line| line.split_once("] FLAG: ")).map(|(_, flag)| flag).collect()
}

#[test]
fn the_effective_flags_are_logged_from_the_first_verbosity_on() {
    assert!(flags(&without_kubeconfig(&[])).is_empty());
    let ended = without_kubeconfig(&["-v=1", "--controllers=*,-deployment", "--kube-api-qps=50"]);
    let flags = flags(&ended);
    for flag in [
        r#"--controllers="[*,-deployment]""#,
        r#"--kube-api-burst="30""#,
        r#"--kube-api-qps="50""#,
        r#"--leader-elect="false""#,
        r#"--min-resync-period="12h0m0s""#,
        r#"--v="1""#,
    ] {
        assert!(flags.contains(&flag), "{flag}: {flags:#?}");
    }
    assert!(flags.is_sorted_by_key(|flag| flag.split('=').next()), "{flags:#?}");
}

#[test]
fn lines_begin_as_klogs_do() {
    let ended = without_kubeconfig(&[]);
    let line = ended.stderr.lines().next().expect("it says that it starts");
    let (header, message) = line.split_once("] ").expect("a header ends with a bracket");
    assert_eq!(message, concat!("\"Starting\" version=\"", env!("CARGO_PKG_VERSION"), "\""));
    let words: Vec<&str> = header.split_whitespace().collect();
    let [date, time, process, place] = words[..] else { panic!("{header}") };
    let shape = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
    assert_eq!((shape(date).as_str(), shape(time).as_str()), ("I0000", "00:00:00.000000"));
    assert!(process.parse::<u32>().is_ok(), "{header}");
    assert_eq!(place.split_once(':').map(|(file, _)| file), Some("host.rs"));
}

#[test]
fn json_goes_to_standard_error() {
    let parsed = |text: &str| -> Vec<serde_json::Value> {
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
    };
    let run =
        |arguments: &[&str]| run(MANAGER, &[&["--leader-elect=false", "--logging-format=json"], arguments].concat());
    let ended = run(&[]);
    let lines = parsed(&ended.stderr);
    let line = &lines[0];
    assert_eq!((&line["msg"], &line["v"]), (&"Starting".into(), &0.into()));
    assert!(line["ts"].is_f64() && line["caller"].as_str().is_some_and(|place| place.starts_with("src/host.rs:")));
    assert_eq!(ended.stdout, "");
    // Buffers are written at the end.
    let alpha = "--feature-gates=LoggingAlphaOptions=true";
    let split = run(&[alpha, "--log-json-split-stream", "--log-json-info-buffer-size=1Mi"]);
    assert_eq!(parsed(&split.stdout).len(), lines.len(), "{}", split.stdout);
    assert!(parsed(&split.stderr).is_empty(), "{}", split.stderr);
    let refused = run(&["--log-json-split-stream", "--vmodule=worker=4"]);
    assert_eq!(refused.refusals().len(), 2, "{}", refused.stderr);
}

#[test]
fn vmodule_raises_the_verbosity_of_a_file() {
    let with = |flag: &str| without_kubeconfig(&[flag]).stderr.matches("] FLAG: ").count();
    assert_eq!((with("--vmodule=worker=9") > 0, with("--vmodule=flags=1") > 0), (false, true));
}

fn replica_set() -> serde_json::Value {
    serde_json::json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

/// The lines that upstream has too, and from which verbosity on it prints them.
const LINES: &[(i32, &str)] = &[
    (0, "\"Starting\" version="),
    (0, "\"Waiting for caches to sync\" controller=\"replicaset-controller\""),
    (0, "\"Caches are synced\" controller=\"replicaset-controller\""),
    (0, "\"Event occurred\" logger=\"replicaset-controller\""),
    (1, "FLAG: --v="),
    (2, "\"Caches populated\" resource=\"replicasets.apps\""),
    (2, "\"Too few replicas\" logger=\"replicaset-controller\""),
    (2, "\"Sending requests as JSON; requesting protobuf responses for supported kinds\""),
    (4, "\"Stopping stage\""),
];

#[tokio::test]
async fn lines_are_printed_from_the_verbosity_of_upstreams_on() {
    for verbosity in [0, 1, 2, 4] {
        let server = Server::start(Sandbox::default()).await;
        server.sandbox.create(&REPLICA_SETS, replica_set()).expect("the replica set is valid");
        let folder = Folder::new();
        let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
        let flags = [&kubeconfig, "--leader-elect=false", &format!("-v={verbosity}")];
        let mut manager = Process::start(MANAGER, &flags);
        let event = manager.says("\"Event occurred\"").await;
        assert!(event.contains(" object=\"default/web\" "), "{event}");
        assert!(event.contains(" kind=\"ReplicaSet\" apiVersion=\"apps/v1\" type=\"Normal\" "), "{event}");
        assert!(event.contains(" reason=\"SuccessfulCreate\" message=\"Created pod: web-"), "{event}");
        manager.terminate();
        let log = manager.ended().await.stderr;
        for (from, line) in LINES {
            assert_eq!(log.contains(line), verbosity >= *from, "{line} at -v={verbosity}:\n{log}");
        }
    }
}

const SECRET: &str = "s3cr3t-0f-a-t3st";

/// A kubeconfig whose user is written as `user`.
fn kubeconfig(folder: &Folder, server: &str, user: &str) -> String {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts:\n- name: c\n  context: {{cluster: k, user: u}}\n\
         clusters:\n- name: k\n  cluster: {{server: {server:?}}}\n\
         users:\n- name: u\n  user: {user}\n"
    );
    format!("--kubeconfig={}", folder.file("kubeconfig", &text))
}

#[tokio::test]
async fn no_secret_is_printed_at_any_verbosity() {
    let works: Instead = |_| None;
    // It serves everything but the resources of controllers: credentials are refused late.
    let refuses: Instead = |path| path.contains("/replicasets").then_some((401, "no"));
    for (instead, until) in [(works, "\"Caches are synced\""), (refuses, "\"List or watch failed\"")] {
        let server = Server::start_with(Sandbox::default(), instead).await;
        let folder = Folder::new();
        let kubeconfig = kubeconfig(&folder, &server.address, &format!("{{token: {SECRET}}}"));
        let mut manager = Process::start(MANAGER, &["--leader-elect=false", "-v=10", &kubeconfig]);
        manager.says(until).await;
        manager.terminate();
        let ended = manager.ended().await;
        assert_eq!(ended.code, Some(0));
        let printed = ended.stdout + &ended.stderr;
        assert_eq!(printed.lines().find(|line| line.contains(SECRET)), None);
        let has_token = |value: &http::HeaderValue| value.as_bytes().ends_with(SECRET.as_bytes());
        let requests = server.sandbox.requests();
        assert!(requests.iter().any(|request| request.headers.get("authorization").is_some_and(has_token)));
    }
}

#[test]
fn a_kubeconfig_that_is_refused_is_not_printed() {
    let folder = Folder::new();
    for user in [
        format!("{{token: [{SECRET}]}}"),
        format!("{{token: {SECRET}"),
        format!("[{SECRET}]"),
        format!("{{client-key-data: {SECRET}, client-certificate-data: {SECRET}}}"),
        format!("{{client-key-data: 'bm90IGEga2V5', client-certificate-data: {SECRET}}}"),
        format!("{{token: \"{SECRET}\\n\"}}"),
        format!("{{username: {SECRET}, password: {{{SECRET}: 1}}}}"),
    ] {
        let kubeconfig = kubeconfig(&folder, "http://127.0.0.1:1", &user);
        let ended = run(MANAGER, &["--leader-elect=false", "-v=10", &kubeconfig]);
        assert!(matches!(ended.code, Some(1 | 2)), "{user}: {}", ended.stderr);
        let printed = ended.stdout + &ended.stderr;
        assert!(!printed.contains(SECRET), "{user}: {printed}");
    }
}
