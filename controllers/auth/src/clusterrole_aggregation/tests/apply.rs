//! Aggregation on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::{aggregated, role, rule};
use crate::clusterrole_aggregation::DESCRIPTOR;
use crate::clusterrole_aggregation::view::ClusterRole;

const ROLES: Resource = ClusterRole::RESOURCE;

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).prepare(|sandbox| {
        let to_admin = json!({ "to": "admin" });
        sandbox.create(&ROLES, aggregated("admin", std::slice::from_ref(&to_admin), &["old"])).unwrap();
        sandbox.create(&ROLES, role("view", &to_admin, &["get", "list"])).unwrap();
    })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[ROLES]).await;
    cluster
}

fn get(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&ROLES, &ObjectKey::cluster_scoped(name)).unwrap_or_default()
}

async fn admin_has(cluster: &TestCluster, verbs: &[&str]) {
    let rules: Vec<Value> = verbs.iter().map(|verb| rule(verb)).collect();
    let expected = if rules.is_empty() { Value::Null } else { json!(rules) };
    cluster.eventually("the union", |sandbox| get(sandbox, "admin")["rules"] == expected).await;
}

fn add_edit(cluster: &TestCluster) {
    cluster.sandbox().create(&ROLES, role("edit", &json!({ "to": "admin" }), &["delete", "get"])).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_union_is_applied_once_and_follows_the_roles() {
    let cluster = start(environment()).await;
    admin_has(&cluster, &["get", "list"]).await;
    let admin = get(cluster.sandbox(), "admin");
    let managers = admin["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let ours = managers.iter().find(|entry| entry["manager"] == "clusterrole-aggregation-controller").expect("it owns");
    assert_eq!(ours["operation"], "Apply");
    let requests = cluster.requests_of("clusterrole-aggregation-controller");
    let writes: Vec<_> = requests.iter().filter(|request| request.method != "GET").collect();
    assert_eq!(writes.len(), 1, "one write");
    let body: Value = serde_json::from_str(&writes[0].body).unwrap();
    assert_eq!(
        body,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "admin", "uid": admin["metadata"]["uid"] },
            "rules": [rule("get"), rule("list")],
        })
    );
    add_edit(&cluster);
    admin_has(&cluster, &["delete", "get", "list"]).await;
    cluster.sandbox().delete(&ROLES, &ObjectKey::cluster_scoped("view")).unwrap();
    admin_has(&cluster, &["delete", "get"]).await;
    let key = ObjectKey::cluster_scoped("edit");
    cluster.sandbox().patch(&ROLES, &key, &json!({ "metadata": { "labels": { "to": null } } })).unwrap();
    admin_has(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let cluster = start(environment()).await;
    admin_has(&cluster, &["get", "list"]).await;
    let before = cluster.requests_of("clusterrole-aggregation-controller").len();
    cluster.sandbox().create(&ROLES, role("apart", &json!({}), &["get"])).unwrap();
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(cluster.requests_of("clusterrole-aggregation-controller").len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_role_of_another_is_aggregated_through_it() {
    let cluster = start(environment().prepare(|sandbox| {
        let mut edit = aggregated("edit", &[json!({ "to": "edit" })], &[]);
        edit["metadata"]["labels"] = json!({ "to": "admin" });
        sandbox.create(&ROLES, edit).unwrap();
        sandbox.create(&ROLES, role("writer", &json!({ "to": "edit" }), &["update"])).unwrap();
    }))
    .await;
    admin_has(&cluster, &["update", "get", "list"]).await;
}

#[tokio::test(start_paused = true)]
async fn lost_answers_refusals_and_late_watches_change_nothing() {
    let unavailable = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    for fault in [
        Fault::on_writes().times(1).lose_answer(),
        Fault::on(Verb::Patch).times(3).fail(unavailable),
        Fault::on(Verb::Patch).times(30).fail(Status::too_many_requests(1)),
    ] {
        let cluster = start(environment().prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&ROLES, Duration::from_secs(30));
        }))
        .await;
        add_edit(&cluster);
        admin_has(&cluster, &["delete", "get", "list"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        admin_has(cluster, &["get", "list"]).await;
        add_edit(cluster);
        admin_has(cluster, &["delete", "get", "list"]).await;
        cluster.settle().await;
    })
    .await;
    assert_eq!(writes, 2);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_cannot_be_decoded_gives_up_its_rules_when_it_is_deleted() {
    let broken = environment().allow_error("Object cannot be decoded").prepare(|sandbox| {
        sandbox.create(&ROLES, role("edit", &json!({ "to": "admin" }), &["delete"])).unwrap();
        DirectClient::new(sandbox)
            .merge(&ROLES, &ObjectKey::cluster_scoped("edit"), None, &json!({ "rules": 5 }))
            .unwrap();
    });
    let cluster = start(broken).await;
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(get(cluster.sandbox(), "admin")["rules"], json!([rule("old")]), "its rules are not known");
    cluster.sandbox().delete(&ROLES, &ObjectKey::cluster_scoped("edit")).unwrap();
    admin_has(&cluster, &["get", "list"]).await;
}
