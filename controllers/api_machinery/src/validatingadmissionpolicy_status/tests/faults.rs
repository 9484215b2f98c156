//! Policies when requests fail, watches are late, and managers end.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_testing::{TestCluster, kill_after_each_write, passing_faults};
use serde_json::json;

use super::apply::{ACCOUNT, POLICIES, create, environment, is_checked, key, policy, warnings};
use crate::validatingadmissionpolicy_status::unresolved::{Memory, MissingSchemas, Unresolved};

async fn life(cluster: &TestCluster) {
    cluster.watches(&[POLICIES]).await;
    create(cluster.sandbox(), policy("p", "apps", "deployments", "object.spec.replicas > 'many'"));
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    let changed = json!({ "spec": { "validations": [{ "expression": "object.spec.replicas > 1" }] } });
    cluster.sandbox().patch(&POLICIES, &key("p"), &changed).unwrap();
    cluster.eventually("it is checked again", |sandbox| is_checked(sandbox, "p", 2)).await;
    cluster.settle().await;
    assert_eq!(warnings(cluster.sandbox(), "p"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 2);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().allow_error("Reconcile failed").start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_watch_leads_to_no_second_write() {
    let cluster = environment().start().await;
    cluster.watches(&[POLICIES]).await;
    cluster.sandbox().faults().delay_events(&POLICIES, Duration::from_secs(10));
    create(cluster.sandbox(), policy("p", "apps", "deployments", "object.spec.replicas > 1"));
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_policy_does_not_get_the_result_of_the_deleted_one() {
    let cluster = environment().start().await;
    cluster.watches(&[POLICIES]).await;
    cluster.sandbox().faults().delay_events(&POLICIES, Duration::from_secs(10));
    create(cluster.sandbox(), policy("p", "apps", "deployments", "object.spec.replicas > 'many'"));
    cluster.sandbox().delete(&POLICIES, &key("p")).unwrap();
    create(cluster.sandbox(), policy("p", "apps", "deployments", "object.spec.replicas > 1"));
    cluster.eventually("it is checked", |sandbox| is_checked(sandbox, "p", 1)).await;
    assert_eq!(warnings(cluster.sandbox(), "p"), Vec::<String>::new());
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(warnings(cluster.sandbox(), "p"), Vec::<String>::new());
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn missing_schemas_are_looked_for_some_minutes() {
    let mut looks = Vec::new();
    let mut missing = MissingSchemas::after(None, at(0));
    while let Some(next) = missing.next {
        assert!(missing.is_due(next) && !missing.is_due(next - SignedDuration::from_secs(1)));
        looks.push(next.as_second());
        missing = MissingSchemas::after(Some(missing), next);
    }
    assert_eq!(looks, [1, 3, 7, 15, 31, 63, 127, 255]);
    assert!(!missing.is_due(at(10_000)));
}

#[test]
fn a_change_of_discovery_looks_for_missing_schemas_again() {
    let (memory, missing) = (
        Memory::default(),
        Unresolved { generation: 2, schemas: Some(MissingSchemas::after(None, at(0))), ..Unresolved::default() },
    );
    memory.set(&key("p"), missing.clone());
    assert_eq!(memory.look_again(at(100)), [key("p")]);
    let again = memory.get(&key("p"), 2).and_then(|unresolved| unresolved.schemas).unwrap();
    assert_eq!(again.next, Some(at(100)));
    assert_eq!(memory.get(&key("p"), 3), None, "a newer spec has been checked by nobody");
    memory.set(&key("p"), Unresolved { generation: 2, ..Unresolved::default() });
    assert_eq!(memory.look_again(at(200)), [], "everything is resolved");
    memory.set(&key("p"), missing);
    memory.forget(&key("p"));
    assert_eq!(memory.look_again(at(300)), []);
}
