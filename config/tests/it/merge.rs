//! Defaults < file < environment < flags, and the merged result.

use crate::support::{FILE, HEADERS, at, load, load_arguments, load_file, load_whole_file, table, wrong_type};
use kcm_config::{Loaded, Origin, Problem, Sources, Table, Value, Warning, gates};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Debug, PartialEq, Deserialize)]
struct ReplicaSetSettings {
    #[serde(rename = "ConcurrentRSSyncs")]
    concurrent_syncs: u32,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelloSettings {
    greeting: String,
}

#[test]
fn each_source_overrides_the_one_before() {
    let file = format!(
        "{HEADERS}Generic:\n  ClientConnection: {{qps: 1, burst: 1, kubeconfig: file}}\n  MinResyncPeriod: 1h\n"
    );
    let sources = Sources::default()
        .arguments(["--config", FILE, "--kube-api-qps=3"])
        .variables([("KCM_KUBE_API_QPS", "2"), ("KCM_KUBE_API_BURST", "2")])
        .file(FILE, file);
    let settings = load(&sources).expect("everything is good");
    let expected = [
        ("kube-api-qps", "3", Origin::Argument("--kube-api-qps".to_owned())),
        ("kube-api-burst", "2", Origin::Variable("KCM_KUBE_API_BURST".to_owned())),
        ("kubeconfig", "file", at(4, 40)),
        ("min-resync-period", "1h0m0s", at(5, 3)),
        ("controllers", "*", Origin::Default),
    ];
    for (flag, value, origin) in expected {
        assert_eq!(settings.value(flag).map(ToString::to_string).as_deref(), Some(value), "{flag}");
        assert_eq!(settings.origin(flag), Some(&origin), "{flag}");
    }
}

#[test]
fn a_list_is_replaced_whole() {
    let file = format!("{HEADERS}Generic: {{Controllers: [a, b, c]}}\n");
    let sources = Sources::default().arguments(["--config", FILE, "--controllers=d"]).file(FILE, file);
    assert_eq!(
        load(&sources).expect("both are good").get::<Vec<String>>("controllers").ok(),
        Some(vec!["d".to_owned()])
    );
}

#[test]
fn sections_are_read_as_structs_with_the_defaults_in_them() {
    let settings = load_file("ReplicaSetController: {concurrentRSSyncs: 9}\n").expect("the file is good");
    let replica_sets: ReplicaSetSettings = settings.section("ReplicaSetController").expect("the section is there");
    assert_eq!(replica_sets, ReplicaSetSettings { concurrent_syncs: 9 });
    let hello: HelloSettings = settings.section("Hello").expect("the plugin's section is there");
    assert_eq!(hello, HelloSettings { greeting: "hello".to_owned() });
}

#[test]
fn a_plugin_s_row_has_a_flag_a_variable_and_a_key() {
    let file = format!("{HEADERS}Hello: {{Greeting: hi}}\n");
    let cases = [
        (Sources::default().arguments(["--config", FILE]).file(FILE, file), "hi"),
        (Sources::default().variables([("KCM_HELLO_GREETING", "hey")]), "hey"),
        (Sources::default().arguments(["--hello-greeting=ho"]), "ho"),
    ];
    for (sources, expected) in cases {
        let settings = load(&sources).expect("the source is good");
        assert_eq!(settings.section::<HelloSettings>("Hello").expect("the section is there").greeting, expected);
    }
}

#[test]
fn asking_for_what_is_not_there_is_an_error_and_no_panic() {
    let settings = load_arguments(&[]).expect("nothing is good");
    let error = |result: Result<i32, kcm_config::AccessError>| result.expect_err("it is not there").to_string();
    assert_eq!(error(settings.get("kube-api-bursts")), "no setting has the flag --kube-api-bursts");
    assert_eq!(error(settings.get("kube-api-qps")), "--kube-api-qps is a float32, and was asked for as i32");
    assert!(settings.section::<HelloSettings>("Nowhere").is_err());
}

#[test]
fn gates_come_from_their_flag() {
    let gate = &gates::DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS;
    assert!(load_arguments(&[]).expect("nothing is good").enabled(gate));
    let off = load_arguments(&["--feature-gates=DeploymentReplicaSetTerminatingReplicas=false"]);
    assert!(!off.expect("the gate is known").enabled(gate));
    let variable = Sources::default().variables([("KCM_FEATURE_GATES", "AllBeta=false")]);
    assert!(!load(&variable).expect("the stage is known").enabled(gate));
}

#[test]
fn mistakes_of_every_source_are_reported_together_even_when_overridden() {
    let sources = Sources::default()
        .arguments(["--config", FILE, "--kube-api-qps=1", "--nope"])
        .variables([("KCM_KUBE_API_QPS", "fast"), ("KCM_FEATURE_GATES", "Nope=true")])
        .file(FILE, format!("{HEADERS}Generic: {{ClientConnection: {{qps: slow}}}}\n"));
    let errors = load(&sources).expect_err("four mistakes");
    let found: Vec<(String, Problem)> =
        errors.into_iter().map(|error| (error.origin.to_string(), error.problem)).collect();
    assert_eq!(
        found,
        [
            ("/etc/kcm.yaml:3:35".to_owned(), wrong_type("Generic.ClientConnection.qps", "slow", "a number")),
            ("KCM_KUBE_API_QPS".to_owned(), wrong_type("--kube-api-qps", "\"fast\"", "a number")),
            ("KCM_FEATURE_GATES".to_owned(), Problem::UnknownGate { gate: "Nope".to_owned(), nearest: None }),
            ("--nope".to_owned(), Problem::UnknownFlag { nearest: None }),
        ]
    );
}

#[test]
fn a_misspelled_variable_is_refused_and_a_service_link_is_not() {
    let misspelled = load(&Sources::default().variables([("KCM_KUBE_API_QSP", "1")])).expect_err("it is misspelled");
    assert_eq!(misspelled[0].problem, Problem::UnknownVariable { nearest: "KCM_KUBE_API_QPS".to_owned() });

    let links = [("KCM_SERVICE_HOST", "10.0.0.1"), ("KCM_PORT_443_TCP", "tcp://10.0.0.1:443"), ("HOME", "/root")];
    let settings = load(&Sources::default().variables(links)).expect("they are not ours");
    let ignored = |name: &str| Warning::IgnoredVariable { name: name.to_owned() };
    assert_eq!(settings.warnings(), [ignored("KCM_PORT_443_TCP"), ignored("KCM_SERVICE_HOST")]);
}

#[test]
fn the_listing_is_aligned_and_names_origins() {
    let rows = kcm_config::generic::rows().filter(|row| ["kube-api-qps", "kubeconfig"].contains(&row.name));
    let table = Table::new(rows).expect("two rows of a good table");
    let sources = Sources::default().variables([("KCM_KUBE_API_QPS", "7.5")]);
    let Ok(Loaded::Settings(settings)) = table.load(&sources) else { panic!("the variable is good") };
    assert_eq!(settings.render(), "--kube-api-qps  7.5  KCM_KUBE_API_QPS\n--kubeconfig    \"\"   default\n");
}

#[test]
fn the_listing_has_one_line_for_each_setting() {
    let settings = load_arguments(&["--kubeconfig=a\nb", "--hello-greeting= "]).expect("any text is good");
    let listing = settings.render();
    assert_eq!(listing.lines().count(), table().rows().len());
    let line: Vec<&str> =
        listing.lines().find(|line| line.starts_with("--kubeconfig")).unwrap_or("").split(' ').collect();
    let words: Vec<&str> = line.into_iter().filter(|word| !word.is_empty()).collect();
    assert_eq!(words, ["--kubeconfig", r#""a\nb""#, "--kubeconfig"], "{listing}");
}

#[derive(Debug, Deserialize)]
struct NotReplicaSetSettings {
    #[serde(rename = "ConcurrentRSSyncs")]
    _concurrent_syncs: String,
}

#[test]
fn a_section_that_does_not_fit_says_which_source_is_to_blame() {
    let settings = load_arguments(&["--concurrent-replicaset-syncs=7"]).expect("the flag is good");
    let error = settings.section::<NotReplicaSetSettings>("ReplicaSetController").expect_err("a number is no text");
    let cause = std::error::Error::source(&error).expect("figment says why").to_string();
    assert!(cause.contains("ConcurrentRSSyncs") && cause.contains("the command line"), "{cause}");
}

#[test]
fn settings_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<kcm_config::Effective>();
}

#[test]
fn the_documentation_lists_every_row() {
    let page = table().markdown();
    for row in table().rows() {
        let name = format!("`{}`", row.label());
        let variable = row.variable().unwrap_or_else(|| name.clone());
        assert!(page.contains(&name) && page.contains(&variable), "{name}");
    }
}

/// Values of four settings of different types from a random source; `None` if the source does not set it.
type Said = (Option<i32>, Option<f32>, Option<bool>, Option<Vec<String>>);

const SETTINGS: [&str; 4] = ["kube-api-burst", "kube-api-qps", "leader-elect", "controllers"];

fn said() -> impl Strategy<Value = Said> {
    let lists = prop::collection::vec("[-*a-z,\" ]{1,5}", 0..3);
    prop::option::of(any::<i32>()).prop_flat_map(move |burst| {
        (Just(burst), prop::option::of(prop::num::f32::NORMAL), any::<Option<bool>>(), prop::option::of(lists.clone()))
    })
}

fn values(said: &Said) -> [Option<Value>; 4] {
    let (burst, qps, elect, controllers) = said.clone();
    [burst.map(Value::Int32), qps.map(Value::Float32), elect.map(Value::Bool), controllers.map(Value::Strings)]
}

fn file_of(said: &Said) -> String {
    let (burst, qps, elect, controllers) = said;
    let mut lines = vec!["Generic:".to_owned()];
    lines.extend(elect.map(|elect| format!("  LeaderElection: {{leaderElect: {elect}}}")));
    let quoted = |items: &Vec<String>| items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(",");
    lines.extend(controllers.as_ref().map(|items| format!("  controllers: [{}]", quoted(items))));
    lines.push("  ClientConnection:".to_owned());
    lines.extend(burst.map(|burst| format!("    burst: {burst}")));
    lines.extend(qps.map(|qps| format!("    qps: {qps}")));
    format!("{HEADERS}{}\n", lines.join("\n"))
}

proptest! {
    #[test]
    fn the_strongest_source_that_says_something_decides(file in said(), variables in said(), flags in said()) {
        let given = |said: &Said| SETTINGS.into_iter().zip(values(said)).collect::<Vec<_>>();
        let arguments = given(&flags).into_iter().filter_map(|(flag, value)| Some(format!("--{flag}={}", value?)));
        let environment = given(&variables).into_iter().filter_map(|(flag, value)| {
            Some((format!("KCM_{}", flag.replace('-', "_").to_uppercase()), value?.to_string()))
        });
        let sources = Sources::default()
            .arguments(["--config", FILE])
            .arguments(arguments)
            .variables(environment)
            .file(FILE, file_of(&file));
        let settings = load(&sources).map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
        for (number, flag) in SETTINGS.into_iter().enumerate() {
            let layers = [values(&flags), values(&variables), values(&file)];
            let decides = layers.into_iter().position(|values| values[number].is_some());
            let expected = [&flags, &variables, &file].into_iter().find_map(|said| values(said)[number].clone());
            let expected = expected.or_else(|| Some(table().find(flag)?.initial.value()));
            prop_assert_eq!(settings.value(flag), expected.as_ref());
            let origin = settings.origin(flag).expect("every row has an origin");
            let found = match origin {
                Origin::Argument(_) => Some(0),
                Origin::Variable(_) => Some(1),
                Origin::File { .. } => Some(2),
                Origin::Default => None,
            };
            prop_assert_eq!(found, decides);
        }
    }

    #[test]
    fn rendered_settings_load_to_the_same_values(
        said in said(),
        kubeconfig: String,
        greeting in "[\\x00-\\xff\u{2028}\u{feff}😀]{0,6}",
        nanoseconds: i64,
    ) {
        let given = SETTINGS.into_iter().zip(values(&said)).filter_map(|(flag, value)| Some(format!("--{flag}={}", value?)));
        let period = kcm_config::GoDuration::from_nanos(nanoseconds);
        let others = [
            format!("--kubeconfig={kubeconfig}"),
            format!("--hello-greeting={greeting}"),
            format!("--min-resync-period={period}"),
        ];
        let settings = load(&Sources::default().arguments(given.chain(others)))
            .map_err(|errors| TestCaseError::fail(format!("{errors:?}")))?;
        let file = settings.render_yaml();
        let again = load_whole_file(&file).map_err(|errors| TestCaseError::fail(format!("{errors:?} in {file}")))?;
        for row in table().rows().iter().filter(|row| row.path.is_some()) {
            prop_assert_eq!(again.value(row.name), settings.value(row.name), "{} in {}", row.name, &file);
        }
        prop_assert_eq!(again.render_yaml(), file);
    }
}
