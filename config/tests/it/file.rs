//! The file is read strictly, and every mistake has its position.

use crate::support::{FILE, HEADERS, at, in_file, load, load_file, load_whole_file, wrong_type};
use kcm_config::{API_VERSION, KIND, Kind, Origin, Problem, Sources};
use proptest::prelude::*;

#[test]
fn both_spellings_of_a_key_are_taken() {
    let bodies = [
        "Generic:\n  ClientConnection:\n    qps: 50\nReplicaSetController:\n  ConcurrentRSSyncs: 7\n",
        "generic:\n  clientConnection:\n    qps: 50\nreplicaSetController:\n  concurrentRSSyncs: 7\n",
    ];
    for body in bodies {
        let settings = load_file(body).unwrap_or_else(|errors| panic!("{body}: {errors:?}"));
        assert_eq!(settings.get::<f32>("kube-api-qps").ok(), Some(50.0), "{body}");
        assert_eq!(settings.get::<i32>("concurrent-replicaset-syncs").ok(), Some(7), "{body}");
        assert_eq!(settings.origin("kube-api-qps"), Some(&at(5, 5)), "{body}");
        assert_eq!(settings.origin("concurrent-replicaset-syncs"), Some(&at(7, 3)), "{body}");
    }
}

#[test]
fn a_key_that_has_moved_is_taken_with_a_warning_and_not_beside_its_present_form() {
    let former = "KubeCloudShared:\n  nodeMonitorPeriod: 7s\n";
    let present = "NodeLifecycleController:\n  NodeMonitorPeriod: 8s\n";
    let settings = load_file(former).expect("the former key is good");
    assert_eq!(settings.value("node-monitor-period").map(ToString::to_string).as_deref(), Some("7s"));
    let warnings: Vec<String> = settings.warnings().iter().map(ToString::to_string).collect();
    let moved =
        format!("{}: KubeCloudShared.nodeMonitorPeriod has moved: use the key of --node-monitor-period", at(4, 3));
    assert_eq!(warnings, [moved]);
    assert_eq!(load_file(present).expect("the present key is good").warnings(), []);
    for both in [format!("{former}{present}"), format!("{present}{former}")] {
        let errors = load_file(&both).expect_err("the setting is given twice");
        let first = kcm_config::Position { line: 4, column: 3 };
        let problem = Problem::DuplicateKey { key: "--node-monitor-period".to_owned(), first };
        assert_eq!(errors, [in_file(6, 3, problem)], "{both}");
    }
}

#[test]
fn json_is_taken() {
    let text = format!(
        "{{\"kind\": \"{KIND}\", \"apiVersion\": \"{API_VERSION}\",\n \"Generic\": {{\"Controllers\": [\"*\", \"-job\"],\n  \
         \"MinResyncPeriod\": \"1h0m0s\", \"LeaderElection\": {{\"leaderElect\": false}}}}}}"
    );
    let settings = load_whole_file(&text).expect("the file is good");
    assert_eq!(settings.get::<Vec<String>>("controllers").expect("it is a list"), ["*", "-job"]);
    assert_eq!(settings.get::<bool>("leader-elect").ok(), Some(false));
    assert_eq!(settings.origin("min-resync-period"), Some(&at(3, 3)));
}

#[test]
fn values_are_read_as_strictly_as_the_api_server_reads_objects() {
    let good = [
        ("ClientConnection: {qps: 1e3, burst: -1, kubeconfig: /etc/x}", "kube-api-qps", "1000"),
        ("LeaderElection: {leaderElect: False}", "leader-elect", "false"),
        ("ControllerStartInterval: 1m30s", "controller-start-interval", "1m30s"),
        ("ControllerStartInterval: '0'", "controller-start-interval", "0s"),
        ("Controllers: []", "controllers", ""),
        ("Controllers:\n  - '*'\n  - -job", "controllers", "*,-job"),
        ("ClientConnection: {kubeconfig: \"5\"}", "kubeconfig", "5"),
    ];
    for (body, flag, expected) in good {
        let settings =
            load_file(&format!("Generic:\n  {body}\n")).unwrap_or_else(|errors| panic!("{body}: {errors:?}"));
        assert_eq!(settings.value(flag).map(ToString::to_string).as_deref(), Some(expected), "{body}");
    }

    let text = "a string (quoted if it looks like another type)";
    let duration = "a duration string with units, such as 1m30s";
    let list = "a list of strings (quoted if they look like another type)";
    let number = Kind::Float32.expected();
    let whole = Kind::Int32.expected();
    let bad = [
        ("{ClientConnection: {qps: '20'}}", 35, "ClientConnection.qps", "\"20\"", number),
        ("{ClientConnection: {qps: .inf}}", 35, "ClientConnection.qps", ".inf", number),
        ("{ClientConnection: {burst: 1.5}}", 37, "ClientConnection.burst", "1.5", whole),
        ("{ClientConnection: {burst: 010}}", 37, "ClientConnection.burst", "010", whole),
        ("{ClientConnection: {burst: 3000000000}}", 37, "ClientConnection.burst", "3000000000", whole),
        ("{ClientConnection: {burst: }}", 35, "ClientConnection.burst", "empty", whole),
        ("{ClientConnection: {burst: [1]}}", 37, "ClientConnection.burst", "a list", whole),
        ("{ClientConnection: {kubeconfig: 5}}", 42, "ClientConnection.kubeconfig", "5", text),
        ("{ClientConnection: {kubeconfig: no}}", 42, "ClientConnection.kubeconfig", "no", text),
        ("{LeaderElection: {leaderElect: yes}}", 41, "LeaderElection.leaderElect", "yes", Kind::Bool.expected()),
        ("{ControllerStartInterval: 0}", 36, "ControllerStartInterval", "0", duration),
        ("{ControllerStartInterval: 5x}", 36, "ControllerStartInterval", "5x", duration),
        ("{Controllers: foo}", 24, "Controllers", "foo", list),
        ("{Controllers: [1]}", 24, "Controllers", "a list", list),
        ("{ClientConnection: 1}", 29, "ClientConnection", "1", "a map"),
    ];
    for (body, column, setting, given, expected) in bad {
        let error = in_file(3, column, wrong_type(&format!("Generic.{setting}"), given, expected));
        assert_eq!(load_file(&format!("Generic: {body}\n")).err(), Some(vec![error]), "{body}");
    }
}

#[test]
fn every_type_has_a_form_in_the_file() {
    let cases = [
        ("Share: 1.5", "hello-share", "1.5"),
        ("Most: 4294967296", "hello-most", "4294967296"),
        ("Ports: [1, 2]", "hello-ports", "1,2"),
        ("Ports: []", "hello-ports", ""),
        ("Labels: {a: b, \"c,d\": \"1\"}", "hello-labels", "a=b,\"c,d=1\""),
        ("Address: \"::1\"", "hello-address", "::1"),
        ("Certs: [\"a,b\", \"c,d:x,y\"]", "hello-certs", "a,b;c,d:x,y"),
        ("Certs: []", "hello-certs", ""),
        ("Size: 64Ki", "hello-size", "64Ki"),
        ("Size: 1024", "hello-size", "1024"),
        ("Levels: [a=1, b=2]", "hello-levels", "a=1,b=2"),
        ("Ignored: [{group: apps, Resource: x}, {}]", "Hello.Ignored", "{Group=apps,Resource=x},{Group=,Resource=}"),
    ];
    for (body, name, expected) in cases {
        let settings = load_file(&format!("Hello: {{{body}}}\n")).unwrap_or_else(|errors| panic!("{body}: {errors:?}"));
        assert_eq!(settings.value(name).map(ToString::to_string).as_deref(), Some(expected), "{body}");
        let again = load_whole_file(&settings.render_yaml()).unwrap_or_else(|errors| panic!("{body}: {errors:?}"));
        assert_eq!(again.value(name), settings.value(name), "{body}");
    }
    let bad = [
        "Share: '1'",
        "Most: 1.5",
        "Ports: 1",
        "Ports: ['1']",
        "Labels: [a]",
        "Labels: {a: 1}",
        "Labels: {a: b, a: c}",
        "Address: 300.1.1.1",
        "Certs: [a]",
        "Certs: \"a,b\"",
        "Size: much",
        "Levels: [a]",
        "Ignored: [{Kind: x}]",
        "Ignored: [{Group: x, group: y}]",
        "Ignored: {}",
    ];
    for body in bad {
        let errors = load_file(&format!("Hello: {{{body}}}\n")).expect_err(body);
        assert!(
            matches!(&errors[..], [error] if matches!(error.problem, Problem::WrongType { .. })),
            "{body}: {errors:?}"
        );
    }
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_of_their_level() {
    let unknown = |line, column, key: &str, section: &str, nearest: Option<&str>| {
        let nearest = nearest.map(str::to_owned);
        in_file(line, column, Problem::UnknownKey { key: key.to_owned(), section: section.to_owned(), nearest })
    };
    let body =
        "Generic:\n  ClientConnection:\n    qsp: 1\n  controller: []\nReplicaSetControler: {}\nConcurrentRSSyncs: 1\n";
    let expected = vec![
        unknown(5, 5, "qsp", "Generic.ClientConnection", Some("qps")),
        unknown(6, 3, "controller", "Generic", Some("controllers")),
        unknown(7, 1, "ReplicaSetControler", "", Some("ReplicaSetController")),
        unknown(8, 1, "ConcurrentRSSyncs", "", None),
    ];
    assert_eq!(load_file(body).err(), Some(expected));
}

#[test]
fn a_key_may_stand_once_in_either_spelling() {
    let duplicate = |line, column, key: &str, first| {
        let Origin::File { at: Some(first), .. } = first else { panic!("a position") };
        in_file(line, column, Problem::DuplicateKey { key: key.to_owned(), first })
    };
    let body =
        "Generic:\n  Controllers: []\n  controllers: []\ngeneric: {}\nkind: KubeControllerManagerConfiguration\n";
    let expected = vec![
        duplicate(7, 1, "kind", at(2, 1)),
        duplicate(5, 3, "controllers", at(4, 3)),
        duplicate(6, 1, "generic", at(3, 1)),
    ];
    assert_eq!(load_file(body).err(), Some(expected));
}

#[test]
fn the_headers_are_required() {
    let header = |line, column, key, given: Option<&str>, expected| {
        in_file(line, column, Problem::WrongHeader { key, given: given.map(str::to_owned), expected })
    };
    let missing_kind = |line, column| header(line, column, "kind", None, KIND);
    let missing_version = |line, column| header(line, column, "apiVersion", None, API_VERSION);
    let cases = [
        (String::new(), vec![missing_version(1, 1), missing_kind(1, 1)]),
        ("# nothing\n".to_owned(), vec![missing_version(1, 1), missing_kind(1, 1)]),
        (format!("apiVersion: {API_VERSION}\n"), vec![missing_kind(1, 1)]),
        (format!("apiVersion: v1\nkind: {KIND}\n"), vec![header(1, 13, "apiVersion", Some("v1"), API_VERSION)]),
        (format!("apiVersion: {API_VERSION}\nkind: \"Pod\"\n"), vec![header(2, 7, "kind", Some("\"Pod\""), KIND)]),
    ];
    for (text, expected) in cases {
        assert_eq!(load_whole_file(&text).err(), Some(expected), "{text:?}");
    }
}

#[test]
fn a_file_that_is_no_map_or_several_documents_is_refused() {
    let no_map = vec![in_file(1, 1, wrong_type("the file", "a list", "a map"))];
    assert_eq!(load_whole_file("[]").err(), Some(no_map));
    let several = in_file(3, 1, Problem::Unsupported { feature: "several documents in one file" });
    assert_eq!(load_whole_file(&format!("{HEADERS}---\n{HEADERS}")).err(), Some(vec![several]));
}

#[test]
fn sections_may_be_empty() {
    for body in ["Generic:\n", "Generic: {}\n", "ReplicaSetController: null\n"] {
        assert!(load_file(body).is_ok(), "{body}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_who_named_it() {
    let errors = load(&Sources::default().variables([("KCM_CONFIG", "/no/such/file")])).expect_err("it is not there");
    let [error] = errors.as_slice() else { panic!("one error, not {errors:?}") };
    assert_eq!(error.origin, Origin::File { path: "/no/such/file".into(), at: None });
    assert!(matches!(&error.problem, Problem::Unreadable { reason } if reason.contains("KCM_CONFIG")), "{error}");
}

#[test]
fn a_directory_and_a_huge_file_cannot_be_read() {
    for path in ["/", "/dev/zero"] {
        let outcome = crate::support::table().load(&Sources::of_process(["--config".into(), path.into()]));
        let errors = outcome.expect_err("it is no configuration").0;
        assert!(matches!(errors[0].problem, Problem::Unreadable { .. }), "{path}: {errors:?}");
    }
}

#[test]
fn errors_read_as_sentences() {
    let errors = load_file("Generic:\n  Controler: []\n  ClientConnection: {qps: fast}\n").expect_err("two mistakes");
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "/etc/kcm.yaml:4:3: unknown key Controler in Generic; did you mean Controllers?",
            "/etc/kcm.yaml:5:27: Generic.ClientConnection.qps is fast, expected a number",
        ]
    );
}

#[test]
fn aliases_cannot_blow_up() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n";
    let refused = vec![in_file(3, 7, Problem::Unsupported { feature: "anchors and aliases" })];
    assert_eq!(load_file(bomb).err(), Some(refused));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let sources = Sources::default().arguments(["--config", FILE]).file(FILE, bytes);
        prop_assert!(load(&sources).is_err());
    }

    #[test]
    fn no_broken_file_panics(cut in 0_usize..400, noise in "[\\[\\]{}:,&*!|>'\"\n \t-]{0,8}") {
        let whole = format!("{HEADERS}Generic:\n  Controllers: ['*', \"a\"]\n  ClientConnection:\n    qps: 1.5\n");
        let cut = cut.min(whole.len());
        drop(load_whole_file(&format!("{}{noise}{}", &whole[..cut], &whole[cut..])));
    }
}

#[test]
fn a_file_without_the_right_to_read_it_is_refused_with_what_to_do() {
    let reader = |_: &std::path::Path| Err(std::io::ErrorKind::PermissionDenied.into());
    let errors = load(&Sources::default().arguments(["--config", FILE]).reader(reader)).expect_err("it is unreadable");
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(
        error.to_string(),
        "/etc/kcm.yaml: cannot read the configuration file: permission denied (named by --config): \
         give the user of this process the right to read it"
    );
}
