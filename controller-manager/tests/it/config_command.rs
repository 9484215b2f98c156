//! The sub-command `config` of the binary.

#![cfg(feature = "builtin")]

use std::collections::{BTreeMap, BTreeSet};

use crate::support::program::{Ended, Folder, run, run_with};
use serde_json::Value;

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

const HEAD: &str =
    "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n";

fn config(arguments: &[&str]) -> Ended {
    run(MANAGER, &[&["config"], arguments].concat())
}

/// Returns the output of a `config` command that succeeds.
fn printed(arguments: &[&str]) -> String {
    let ended = config(arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    ended.stdout
}

/// Every setting with its value, as `config effective` says.
fn values(arguments: &[&str]) -> Vec<(String, Value)> {
    let text = printed(&[&["effective", "--output=json"], arguments].concat());
    let list: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
    let setting = |setting: &Value| {
        let name = setting["name"].as_str().expect("every setting has a name");
        (name != "--config" && name != "--output").then(|| (name.to_owned(), setting["value"].clone()))
    };
    list.iter().filter_map(setting).collect()
}

#[test]
fn the_printed_defaults_load_again_as_the_defaults() {
    let folder = Folder::new();
    for output in ["yaml", "json"] {
        let file = folder.file(output, &printed(&["default", "--output", output]));
        assert_eq!(printed(&["validate", &file, "--leader-elect=false"]), format!("{file} is valid\n"));
        assert_eq!(values(&["--config", &file]), values(&[]), "{output}");
    }
    assert_eq!(printed(&["default"]), printed(&["default", "-o", "yaml"]));
}

/// Differences between the printed defaults and upstream's `/configz`, with the reason.
const DIFFERENCES: [(&str, &str); 3] = [
    ("/Generic/LeaderMigration/controllerLeaders", "an empty list, and null there"),
    ("/Logging/verbosity", "a key of ours, so that a reload can change it"),
    ("/Logging/vmodule", "a key of ours, so that a reload can change it"),
];

/// Every value that is no map, and every map without keys, by its pointer.
fn leaves(value: &Value, pointer: &str, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                leaves(value, &format!("{pointer}/{key}"), found);
            }
        }
        leaf @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => drop(found.insert(pointer.to_owned(), leaf.clone())),
    }
}

#[test]
fn the_printed_defaults_are_those_of_upstreams_configz() {
    let (mut ours, mut upstreams) = (BTreeMap::new(), BTreeMap::new());
    let printed: Value = serde_json::from_str(&printed(&["default", "-o=json"])).expect("it is JSON");
    let configz: Value = serde_json::from_str(include_str!("../../../config/tests/data/config-defaults.json"))
        .expect("the reference is JSON");
    leaves(&printed, "", &mut ours);
    leaves(&configz, "", &mut upstreams);
    let pointers: BTreeSet<&String> = ours.keys().chain(upstreams.keys()).collect();
    let differ = pointers.into_iter().filter(|pointer| ours.get(*pointer) != upstreams.get(*pointer));
    assert_eq!(differ.map(String::as_str).collect::<Vec<_>>(), DIFFERENCES.map(|(pointer, _)| pointer));
}

#[test]
fn the_defaults_do_not_depend_on_what_is_given() {
    let ended = run_with(MANAGER, &["config", "default", "--kube-api-qps=1"], &[("KCM_KUBE_API_BURST", "2")]);
    assert_eq!(ended.stdout, printed(&["default"]));
}

#[test]
fn the_effective_settings_print_as_a_file_that_loads_again() {
    let folder = Folder::new();
    let given = ["--kube-api-qps=0.5", "--controllers=*,-deployment", "--min-resync-period=90s"];
    let text = printed(&[&["effective", "--output=yaml"], &given[..]].concat());
    for line in [
        "    qps: 0.5  # --kube-api-qps",
        "    burst: 30  # default",
        "  MinResyncPeriod: \"1m30s\"  # --min-resync-period",
        "  verbosity: 0  # default",
        "# --logging-format=\"text\"  # default",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line}: {text}");
    }
    let file = folder.file("file", &text);
    assert_eq!(values(&["--config", &file]), values(&given));
}

#[test]
fn every_setting_says_in_json_where_it_comes_from() {
    let folder = Folder::new();
    let file = folder.file("kcm.yaml", &format!("{HEAD}Generic:\n  ClientConnection: {{qps: 2}}\n"));
    let text = printed(&["effective", "-o=json", "--config", &file, "-v2"]);
    let list: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
    let find = |name| list.iter().find(|setting| setting["name"] == name).expect("it is a setting");
    let qps = find("--kube-api-qps");
    assert_eq!((&qps["path"], &qps["value"]), (&"Generic.ClientConnection.qps".into(), &2.into()));
    assert_eq!(qps["origin"], format!("{file}:4:22"));
    let verbosity = find("--v");
    assert_eq!(find("--config")["path"], Value::Null);
    assert_eq!(verbosity["path"], "Logging.verbosity");
    assert_eq!((&verbosity["value"], &verbosity["origin"]), (&2.into(), &"-v".into()));
}

#[test]
fn a_file_is_validated_with_all_its_mistakes() {
    let folder = Folder::new();
    let file = folder.file("kcm.yaml", &format!("{HEAD}Generic: {{Qps: 1, Controllers: '*', controllers: []}}\n"));
    let refusals = config(&["validate", &file]);
    assert_eq!(
        refusals.refusals(),
        [
            format!("{file}:3:11: unknown key Qps in Generic"),
            format!(
                "{file}:3:32: Generic.Controllers is \"*\", expected a list of strings (quoted if they look like another type)"
            ),
            format!("{file}:3:37: controllers is given twice, first at 3:19"),
        ]
    );
    let file = folder.file("kcm.json", &format!("{HEAD}Generic:\n  Controllers: [replicasets]\n"));
    assert_eq!(
        config(&["validate", &file]).refusals(),
        [format!("{file}:4:3: \"replicasets\" is not in the list of known controllers; did you mean \"replicaset\"?")]
    );
}

#[test]
fn a_wrong_use_is_refused_with_the_right_one() {
    for arguments in [&[][..], &["validate"], &["validate", "--config=/dev/null", "x"], &["default", "x"]] {
        let ended = config(arguments);
        let [refusal] = ended.refusals()[..] else { panic!("{arguments:?}: {}", ended.stderr) };
        assert!(refusal.contains("`config validate FILE`") || refusal.contains("name a regular file"), "{refusal}");
    }
    assert_eq!(
        config(&["effective", "--output=xml"]).refusals(),
        ["--output is \"xml\": the value must be yaml or json"]
    );
}
