//! Tokens: their event mapping, their plan, and their life on an API server in the process.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource, View as _};
use kcm_framework::informers::Change;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::shared::{BootstrapToken, Expiry};
use crate::tests::faults::passing_faults;
use crate::token_cleaner::DESCRIPTOR;
use crate::token_cleaner::event_mapping::keys_for_token;
use crate::token_cleaner::plan::{Expired, Plan, plan};

const SECRETS: Resource = BootstrapToken::RESOURCE;
const ACCOUNT: &str = "token-cleaner";
const SECOND: Duration = Duration::from_secs(1);

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-system", name.to_owned())
}

fn token(name: &str, expiration: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "kube-system" },
        "type": "bootstrap.kubernetes.io/token",
        "data": { "token-secret": STANDARD.encode("tokenSecret"), "expiration": STANDARD.encode(expiration) },
    })
}

fn view(expiration: &str) -> Arc<BootstrapToken> {
    Arc::new(BootstrapToken::decode(&token("a", expiration).to_string()).unwrap())
}

#[test]
fn k1_a_token_is_enqueued_when_it_is_added_or_updated() {
    let token = view("");
    let updated = Change::Updated { old: token.clone(), new: token.clone() };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(token.clone()), true),
        ("updated", updated, true),
        ("deleted", Change::Deleted { last: token.clone(), final_state_known: true }, false),
        ("undecodable", Change::Undecodable { last: token }, false),
    ] {
        assert_eq!(keys_for_token(&change), is_enqueued.then(|| key("a")), "{name}");
    }
}

#[test]
fn k3_a_token_expires_at_its_time_and_at_once_if_that_is_no_time() {
    let now: Timestamp = "2026-01-02T12:00:00Z".parse().unwrap();
    for (expiration, expected, words) in [
        ("", Plan::Keep, "keeps the token, which never expires"),
        (
            "2026-01-02T12:00:01Z",
            Plan::Wait { until: "2026-01-02T12:00:01Z".parse().unwrap() },
            "keeps the token until 2026-01-02T12:00:01Z, when it expires",
        ),
        (
            "2026-01-02T12:00:00Z",
            Plan::Delete(Expired::At(now)),
            "deletes the token, which expired at 2026-01-02T12:00:00Z",
        ),
        (
            "2026-01-02T13:00:00+01:00",
            Plan::Delete(Expired::At(now)),
            "deletes the token, which expired at 2026-01-02T12:00:00Z",
        ),
        ("garbage", Plan::Delete(Expired::Unreadable), "deletes the token, whose expiration is no time"),
    ] {
        let planned = plan(view(expiration).expiry(), now);
        assert_eq!((planned, planned.explain().as_str()), (expected, words), "{expiration:?}");
    }
    assert_eq!(plan(Expiry::At(Timestamp::MAX), now), Plan::Wait { until: Timestamp::MAX });
}

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).select(&["tokencleaner"])
}

fn exists(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&SECRETS, &key(name)).is_some()
}

/// Creates an endless token, a token that expires after half a minute, an expired one, and one whose expiration is no time.
async fn life(cluster: &TestCluster) {
    cluster.watches(&[SECRETS]).await;
    for (name, expiration) in
        [("endless", ""), ("soon", "2026-01-02T12:00:30Z"), ("expired", "2026-01-02T11:00:00Z"), ("broken", "never")]
    {
        cluster.sandbox().create(&SECRETS, token(name, expiration)).unwrap();
    }
    let gone = |sandbox: &Sandbox| !exists(sandbox, "expired") && !exists(sandbox, "broken");
    cluster.eventually("two are deleted", gone).await;
    cluster.eventually("the third is deleted", |sandbox| !exists(sandbox, "soon")).await;
    cluster.settle().await;
    assert!(exists(cluster.sandbox(), "endless"));
    assert!(cluster.sandbox().now() >= "2026-01-02T12:00:30Z".parse::<Timestamp>().unwrap());
}

#[tokio::test(start_paused = true)]
async fn k5_expired_tokens_are_deleted_with_uid_and_version() {
    let cluster = environment().start().await;
    life(&cluster).await;
    let writes = cluster.writes_of(ACCOUNT);
    let path = "/api/v1/namespaces/kube-system/secrets/";
    assert!(writes.iter().all(|write| write.method == "DELETE" && write.path.starts_with(path)), "{writes:?}");
    assert_eq!(cluster.requests_of(ACCOUNT).len(), 3, "nothing is read live");
    for body in cluster.bodies_of(ACCOUNT, "DELETE") {
        let preconditions = &body["preconditions"];
        assert!(preconditions["uid"].is_string() && preconditions["resourceVersion"].is_string(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn k6_a_token_is_deleted_at_the_end_of_its_life_and_not_before() {
    let cluster = environment().object(SECRETS, token("soon", "2026-01-02T12:00:30Z")).start().await;
    cluster.watches(&[SECRETS]).await;
    let started = cluster.sandbox().now();
    let rest = "2026-01-02T12:00:30Z".parse::<Timestamp>().unwrap().duration_since(started);
    cluster.advance(Duration::try_from(rest).unwrap().saturating_sub(Duration::from_millis(20))).await;
    assert!(exists(cluster.sandbox(), "soon"));
    cluster.advance(SECOND).await;
    assert!(!exists(cluster.sandbox(), "soon"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_extended_stays() {
    let cluster = environment().object(SECRETS, token("soon", "2026-01-02T12:00:30Z")).start().await;
    cluster.watches(&[SECRETS]).await;
    let extended = json!({ "data": { "expiration": STANDARD.encode("2026-01-02T12:10:00Z") } });
    cluster.sandbox().patch(&SECRETS, &key("soon"), &extended).unwrap();
    cluster.advance(60 * SECOND).await;
    assert!(exists(cluster.sandbox(), "soon"));
    // Extended again, and the watch is late.
    cluster.sandbox().faults().hold_watches(&SECRETS);
    let extended = json!({ "data": { "expiration": STANDARD.encode("2026-01-02T12:20:00Z") } });
    cluster.sandbox().patch(&SECRETS, &key("soon"), &extended).unwrap();
    cluster.advance(600 * SECOND).await;
    assert!(exists(cluster.sandbox(), "soon"), "the deletion of an old version is a conflict");
    cluster.sandbox().faults().release_watches(&SECRETS);
    cluster.advance(300 * SECOND).await;
    assert!(exists(cluster.sandbox(), "soon"));
    cluster.advance(600 * SECOND).await;
    assert!(!exists(cluster.sandbox(), "soon"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_recreated_behind_the_cache_stays() {
    let cluster = environment().object(SECRETS, token("soon", "2026-01-02T12:00:30Z")).start().await;
    cluster.watches(&[SECRETS]).await;
    cluster.sandbox().faults().hold_watches(&SECRETS);
    cluster.sandbox().delete(&SECRETS, &key("soon")).unwrap();
    cluster.sandbox().create(&SECRETS, token("soon", "")).unwrap();
    cluster.advance(60 * SECOND).await;
    assert!(exists(cluster.sandbox(), "soon"));
}

#[tokio::test(start_paused = true)]
async fn k5_a_deletion_that_fails_is_tried_again() {
    let cluster = environment().allow_error("Reconcile failed").start().await;
    cluster.watches(&[SECRETS]).await;
    let refused = Status::new(403, "Forbidden", "not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(SECRETS).times(3).fail(refused));
    cluster.sandbox().create(&SECRETS, token("expired", "2026-01-02T11:00:00Z")).unwrap();
    cluster.advance(600 * SECOND).await;
    assert!(!exists(cluster.sandbox(), "expired"));
}

#[tokio::test(start_paused = true)]
async fn other_secrets_are_not_touched() {
    let opaque = |namespace: &str, type_: &str| {
        let mut secret = token("other", "2026-01-02T11:00:00Z");
        secret["metadata"]["namespace"] = json!(namespace);
        secret["type"] = json!(type_);
        secret
    };
    let cluster = environment()
        .object(SECRETS, opaque("kube-system", "Opaque"))
        .object(SECRETS, opaque("default", "bootstrap.kubernetes.io/token"))
        .start()
        .await;
    cluster.advance(60 * SECOND).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty());
}

#[tokio::test(start_paused = true)]
async fn late_watches_lead_to_no_second_deletion() {
    let cluster = environment().start().await;
    cluster.watches(&[SECRETS]).await;
    cluster.sandbox().faults().delay_events(&SECRETS, 20 * SECOND);
    cluster.sandbox().create(&SECRETS, token("expired", "2026-01-02T11:00:00Z")).unwrap();
    cluster.advance(120 * SECOND).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 3);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}
