//! The manifests are equal to the output of the code.

use kcm_example_website::website::Website;
use kube::CustomResourceExt as _;
use serde_json::Value;

fn documents(name: &str) -> Vec<Value> {
    let path = format!("{}/manifests/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_definition_is_that_of_the_type() {
    let expected = serde_json::to_value(Website::crd()).expect("the definition is JSON");
    let yaml = serde_saphyr::to_string(&expected).expect("the definition is YAML");
    assert_eq!(documents("crd.yaml"), [expected], "write this to manifests/crd.yaml:\n{yaml}");
}

#[test]
fn the_role_allows_what_the_operator_sends_and_no_more() {
    let role = &documents("rbac.yaml")[1];
    assert_eq!(role["kind"], "ClusterRole");
    let rules: Vec<String> = role["rules"]
        .as_array()
        .expect("a role has rules")
        .iter()
        .map(|rule| {
            let list = |field: &str| {
                let items = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
                items.collect::<Vec<_>>().join(",")
            };
            format!("{} {}: {}", list("apiGroups"), list("resources"), list("verbs"))
        })
        .collect();
    assert_eq!(
        rules,
        [
            "example.com websites: list,watch,patch",
            "example.com websites/status: patch",
            "example.com websites/finalizers: update",
            "apps deployments: list,watch,create,patch",
            " services: list,watch,create,patch",
            " events: create,patch",
        ]
    );
}

#[test]
fn the_deployment_names_flags_that_there_are() {
    let deployment = documents("deployment.yaml").pop().expect("there is one");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_kcm-example-website")).arg("--help").output();
    let help = String::from_utf8(help.expect("the program runs").stdout).expect("help is text");
    let arguments = container["args"].as_array().expect("it has arguments");
    for argument in arguments.iter().filter_map(Value::as_str) {
        let flag = argument.split('=').next().unwrap_or_default();
        assert!(help.contains(flag), "{flag} is not in:\n{help}");
    }
}
