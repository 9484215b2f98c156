//! Policies on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::Sandbox;
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::validatingadmissionpolicy_status::DESCRIPTOR;
use crate::validatingadmissionpolicy_status::policy::Policy;

pub(super) const POLICIES: Resource = Policy::RESOURCE;
const DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");
pub(super) const ACCOUNT: &str = "validatingadmissionpolicy-status-controller";

pub(super) fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR])
}

/// Starts the controller with these policies, which were checked by nobody.
async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[POLICIES]).await;
    cluster
}

/// A policy about a resource, with one expression.
pub(super) fn policy(name: &str, group: &str, resource: &str, expression: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource],
            }] },
            "validations": [{ "expression": expression }],
        },
    })
}

pub(super) fn create(sandbox: &Sandbox, policy: Value) -> Value {
    sandbox.create(&POLICIES, policy).expect("the policy must be valid")
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name.to_owned())
}

pub(super) fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&POLICIES, &key(name)).unwrap_or_default()["status"].clone()
}

/// Returns `true` if the generation of a policy was checked.
pub(super) fn is_checked(sandbox: &Sandbox, name: &str, generation: i64) -> bool {
    status(sandbox, name)["observedGeneration"] == generation
}

/// Returns the warnings of a policy.
pub(super) fn warnings(sandbox: &Sandbox, name: &str) -> Vec<String> {
    let warnings = status(sandbox, name)["typeChecking"]["expressionWarnings"].as_array().cloned().unwrap_or_default();
    warnings.iter().filter_map(|warning| Some(warning["warning"].as_str()?.to_owned())).collect()
}

fn paths(cluster: &TestCluster, method: &str) -> Vec<String> {
    let requests = cluster.requests_of(ACCOUNT).into_iter().filter(|request| request.method == method);
    requests.map(|request| request.path).filter(|path| !path.ends_with("/validatingadmissionpolicies")).collect()
}

fn definition() -> Value {
    let spec = json!({ "type": "object", "properties": { "host": { "type": "string" } } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    json!({
        "metadata": { "name": "websites.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "websites", "kind": "Website" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn y2_the_status_is_applied_once_and_other_fields_stay() {
    let cluster = start(environment()).await;
    let created = create(cluster.sandbox(), policy("p", "apps", "deployments", "object.spec.replicas > 1"));
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    assert_eq!(status(cluster.sandbox(), "p")["typeChecking"], json!({}));
    let written = cluster.writes_of(ACCOUNT);
    let [write] = written.as_slice() else { panic!("one write: {written:?}") };
    assert_eq!(write.path, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/p/status");
    assert!(
        write.query.contains("fieldManager=validatingadmissionpolicy-status") && write.query.contains("force=true")
    );
    let body: Value = serde_json::from_str(&write.body).unwrap();
    assert_eq!(body["metadata"], json!({ "name": "p", "uid": created["metadata"]["uid"] }));

    let note = json!({ "status": { "conditions": [{
        "type": "Note", "status": "True", "reason": "R", "message": "M", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } });
    cluster.sandbox().patch_status(&POLICIES, &key("p"), &note).unwrap();
    let changed = json!({ "spec": { "validations": [{ "expression": "object.spec.replicas > 2" }] } });
    cluster.sandbox().patch(&POLICIES, &key("p"), &changed).unwrap();
    cluster.eventually("it is checked again", |sandbox| is_checked(sandbox, "p", 2)).await;
    assert_eq!(status(cluster.sandbox(), "p")["conditions"][0]["type"], "Note");
    let requests = cluster.requests_of(ACCOUNT).len();
    cluster.advance(Duration::from_mins(30)).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), requests, "at rest nothing is requested");
}

#[tokio::test(start_paused = true)]
async fn y17_expressions_with_wrong_types_have_warnings() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), policy("p", "apps", "deployments", "object.spec.replicas > 'many'"));
    create(cluster.sandbox(), policy("q", "apps", "deployments", "object.spec.replcas > 1"));
    cluster.eventually("they are checked", |sandbox| is_checked(sandbox, "p", 1) && is_checked(sandbox, "q", 1)).await;
    let expected = "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to \
                    '(int, string)'";
    let [warning] = &warnings(cluster.sandbox(), "p")[..] else { panic!("there is one warning") };
    assert!(warning.starts_with(expected), "{warning}");
    let [warning] = &warnings(cluster.sandbox(), "q")[..] else { panic!("there is one warning") };
    assert!(warning.contains("undefined field 'replcas'"), "{warning}");
}

#[tokio::test(start_paused = true)]
async fn d10_many_policies_share_the_index_and_the_documents() {
    let cluster = start(environment().prepare(|sandbox| {
        for number in 0..100 {
            let resource = if number % 2 == 0 { "deployments" } else { "daemonsets" };
            create(sandbox, policy(&format!("p{number:03}"), "apps", resource, "object.metadata.name != ''"));
        }
    }))
    .await;
    let all = |sandbox: &Sandbox| (0..100).all(|number| is_checked(sandbox, &format!("p{number:03}"), 1));
    cluster.eventually("all are checked", all).await;
    let reads = paths(&cluster, "GET");
    let documents = reads.iter().filter(|path| path.starts_with("/openapi/v3/")).count();
    let indexes = reads.iter().filter(|path| *path == "/openapi/v3").count();
    assert!(documents <= 2 && indexes <= 10, "{documents} documents, {indexes} indexes");
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_policy_about_more_kinds_of_a_document_than_are_kept_reads_it_once() {
    let names: Vec<String> = (0..40).map(|number| format!("w{number:02}s")).collect();
    let cluster = start(environment().prepare(move |sandbox| {
        for name in &names {
            let mut definition = definition();
            definition["metadata"]["name"] = json!(format!("{name}.example.com"));
            definition["spec"]["names"] = json!({ "plural": name, "kind": format!("K{name}") });
            sandbox.create(&DEFINITIONS, definition).expect("the definition must be valid");
        }
        let mut policy = policy("p", "example.com", "", "object.spec.host > 1");
        let rule = policy["spec"]["matchConstraints"]["resourceRules"][0].clone();
        let of = |names: &[String]| {
            let mut rule = rule.clone();
            rule["resources"] = json!(names);
            rule
        };
        policy["spec"]["matchConstraints"]["resourceRules"] = names.chunks(8).map(of).collect();
        create(sandbox, policy);
    }))
    .await;
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    let [warning] = &warnings(cluster.sandbox(), "p")[..] else { panic!("there is one warning") };
    assert_eq!(warning.matches("found no matching overload").count(), 40);
    let reads = paths(&cluster, "GET");
    assert_eq!(reads.iter().filter(|path| path.starts_with("/openapi/v3/")).count(), 1, "{reads:?}");
}

#[tokio::test(start_paused = true)]
async fn d9_a_policy_is_checked_again_when_its_kind_appears() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), policy("p", "example.com", "websites", "object.spec.host > 1"));
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    assert_eq!(warnings(cluster.sandbox(), "p"), Vec::<String>::new());
    cluster.sandbox().create(&DEFINITIONS, definition()).expect("the definition must be valid");
    cluster.eventually("it has a warning", |sandbox| !warnings(sandbox, "p").is_empty()).await;
    let [warning] = &warnings(cluster.sandbox(), "p")[..] else { panic!("there is one warning") };
    assert!(warning.contains("example.com/v1, Kind=Website") && warning.contains("(string, int)"), "{warning}");
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn d9_a_checked_policy_costs_nothing_at_the_next_start_but_one_without_kind_waits_for_it() {
    let checked = |expression: &str, resource: &str, group: &str| {
        let mut policy = policy(resource, group, resource, expression);
        policy["status"] = json!({ "observedGeneration": 1, "typeChecking": {} });
        policy
    };
    let cluster = start(environment().prepare(move |sandbox| {
        for (group, resource) in [("apps", "deployments"), ("example.com", "websites")] {
            let policy = checked("object.spec.host > 1", resource, group);
            create(sandbox, policy.clone());
            sandbox.patch_status(&POLICIES, &key(resource), &json!({ "status": policy["status"] })).unwrap();
        }
    }))
    .await;
    cluster.advance(Duration::from_mins(5)).await;
    assert_eq!(paths(&cluster, "GET"), Vec::<String>::new(), "the policies are checked");
    cluster.sandbox().create(&DEFINITIONS, definition()).expect("the definition must be valid");
    cluster.eventually("it has a warning", |sandbox| !warnings(sandbox, "websites").is_empty()).await;
    assert_eq!(warnings(cluster.sandbox(), "deployments"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn warnings_that_differ_in_digits_alone_are_not_written_again() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), policy("p", "example.com", "websites", "object.spec.host > 1"));
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    // As another manager would have written it.
    let status = json!({ "typeChecking": { "expressionWarnings": [{
        "fieldRef": "spec.validations[0].expression",
        "warning": "example.com/v1, Kind=Website: ERROR: <input>:1:18: found no matching overload for '_>_' applied to \
                    '(string, int)'\n | object.spec.host > 1\n | .................^\n",
    }] } });
    cluster.sandbox().patch_status(&POLICIES, &key("p"), &json!({ "status": status })).unwrap();
    cluster.sandbox().create(&DEFINITIONS, definition()).expect("the definition must be valid");
    cluster.eventually("the document is read", |_| !paths(&cluster, "GET").is_empty()).await;
    cluster.advance(Duration::from_mins(5)).await;
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 1);
}
