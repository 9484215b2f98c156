//! Rounds on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::legacy_serviceaccount_token_cleaner::DESCRIPTOR;
use crate::legacy_serviceaccount_token_cleaner::observe::SecretMetadata;
use crate::shared::ServiceAccount;

const SECRETS: Resource = SecretMetadata::RESOURCE;
const ACCOUNTS: Resource = ServiceAccount::RESOURCE;
const DAY: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// A namespace `shop` with the account `robot`, which references the secrets `token` and `old`. Tokens have been tracked for
/// long enough, and the period is shorter than the age of the secrets when the first round looks at them. `old` was labelled
/// long ago.
fn environment() -> TestEnvironment {
    tracked(&json!({ "since": "2025-12-30" }))
}

fn tracked(data: &Value) -> TestEnvironment {
    let data = data.clone();
    TestEnvironment::new([DESCRIPTOR])
        .arguments(&["--legacy-service-account-token-clean-up-period=1s"])
        .namespace("shop")
        .prepare(move |sandbox| {
            let name = "kube-apiserver-legacy-service-account-token-tracking";
            let metadata = json!({ "namespace": "kube-system", "name": name });
            sandbox.create(&CONFIG_MAPS, json!({ "metadata": metadata, "data": data })).unwrap();
            let references = json!([{ "name": "token" }, { "name": "old" }]);
            let account = json!({ "metadata": { "namespace": "shop", "name": "robot" }, "secrets": references });
            sandbox.create(&ACCOUNTS, account).unwrap();
            create_secret(sandbox, "token");
            create_secret(sandbox, "old");
            invalidate(sandbox, "old", "2025-06-01");
            sandbox.faults().inject(Fault::on(Verb::Get).resource(CONFIG_MAPS).delay(2 * SECOND));
        })
}

fn invalidate(sandbox: &Sandbox, name: &str, day: &str) {
    let labels = json!({ "metadata": { "labels": { INVALID_SINCE: day } } });
    sandbox.patch(&SECRETS, &key(name), &labels).expect("the secret is there");
}

/// A cluster after its first round, which is on the second of January.
async fn after_a_round(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.advance(10 * SECOND).await;
    cluster
}

fn create_secret(sandbox: &Sandbox, name: &str) {
    let annotations = json!({ "kubernetes.io/service-account.name": "robot" });
    let metadata = json!({ "namespace": "shop", "name": name, "annotations": annotations });
    let secret = json!({
        "metadata": metadata, "type": "kubernetes.io/service-account-token", "data": { "token": "c2VjcmV0" },
    });
    sandbox.create(&SECRETS, secret).expect("the secret must be valid");
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

/// The label of the secret `token`; absent without the secret.
fn label(sandbox: &Sandbox) -> Option<Value> {
    sandbox.get(&SECRETS, &key("token")).map(|secret| secret["metadata"]["labels"][INVALID_SINCE].clone())
}

fn has_old(sandbox: &Sandbox) -> bool {
    sandbox.get(&SECRETS, &key("old")).is_some()
}

fn use_token(sandbox: &Sandbox, name: &str, day: &str) {
    let labels = json!({ "metadata": { "labels": { "kubernetes.io/legacy-token-last-used": day } } });
    sandbox.patch(&SECRETS, &key(name), &labels).expect("the secret is there");
}

fn requests(cluster: &TestCluster, verb: &str) -> Vec<Value> {
    let requests = cluster.requests_of("legacy-service-account-token-cleaner");
    let of_verb = requests.iter().filter(|request| request.method == verb);
    of_verb.map(|request| serde_json::from_str(&request.body).unwrap_or_default()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_unused_token_is_labelled_by_one_round_and_deleted_by_that_of_the_next_day() {
    let cluster = after_a_round(environment()).await;
    assert_eq!(label(cluster.sandbox()), Some(json!("2026-01-02")));
    let before = cluster.sandbox().get(&SECRETS, &key("token")).unwrap();
    let uid = &before["metadata"]["uid"];
    let patch = json!({ "metadata": { "labels": { INVALID_SINCE: "2026-01-02" }, "uid": uid } });
    assert_eq!(requests(&cluster, "PATCH"), [patch]);
    cluster.advance(DAY).await;
    assert_eq!(label(cluster.sandbox()), None, "it is deleted");
    let preconditions = json!({ "uid": uid, "resourceVersion": before["metadata"]["resourceVersion"] });
    let deletions = requests(&cluster, "DELETE");
    assert_eq!(deletions.last().expect("it was deleted")["preconditions"], preconditions);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_became_invalid_long_ago_is_deleted_by_the_first_round() {
    let cluster = after_a_round(environment()).await;
    assert!(!has_old(cluster.sandbox()));
    assert_eq!(requests(&cluster, "DELETE").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_data_of_a_secret_is_never_read_and_nothing_is_cached() {
    let cluster = after_a_round(environment()).await;
    assert!(!has_old(cluster.sandbox()));
    let lists = cluster.requests_of("kube-controller-manager");
    let of_secrets: Vec<_> = lists.iter().filter(|request| request.path.contains("/secrets")).collect();
    assert!(!of_secrets.is_empty());
    for request in of_secrets {
        let accepted = request.headers["accept"].to_str().unwrap_or_default();
        let is_of_metadata = accepted.contains("as=PartialObjectMetadataList");
        assert!(request.query.contains("fieldSelector=type%3D") && is_of_metadata, "{request:?}");
    }
    assert!(cluster.handle().caches().is_empty(), "nothing is cached");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_used_or_whose_use_cannot_be_read_stays() {
    let cluster = after_a_round(environment().prepare(|sandbox| {
        use_token(sandbox, "token", "2026-01-02");
        use_token(sandbox, "old", "unreadable");
    }))
    .await;
    assert_eq!(label(cluster.sandbox()), Some(Value::Null));
    assert!(has_old(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_names_and_what_a_person_made_stays() {
    let cluster = after_a_round(environment().prepare(|sandbox| {
        create_secret(sandbox, "by-hand");
        invalidate(sandbox, "by-hand", "2025-06-01");
        let volumes = json!([{ "name": "token", "secret": { "secretName": "token" } }]);
        let environment = json!([{ "secretRef": { "name": "old" } }]);
        let containers = json!([{ "name": "main", "image": "image", "envFrom": environment }]);
        let spec = json!({ "containers": containers, "volumes": volumes });
        sandbox.create(&PODS, json!({ "metadata": { "namespace": "shop", "name": "pod" }, "spec": spec })).unwrap();
    }))
    .await;
    assert_eq!(label(cluster.sandbox()), Some(Value::Null));
    assert!(has_old(cluster.sandbox()) && cluster.sandbox().get(&SECRETS, &key("by-hand")).is_some());
    assert!(requests(&cluster, "PATCH").is_empty() && requests(&cluster, "DELETE").is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_day_since_when_tokens_are_tracked_or_too_soon_after_it_nothing_happens() {
    for data in [json!({}), json!({ "since": "lately" }), json!({ "since": "2026-01-02" })] {
        let cluster = after_a_round(tracked(&data)).await;
        assert_eq!(label(cluster.sandbox()), Some(Value::Null), "{data}");
        assert!(has_old(cluster.sandbox()), "{data}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_between_the_look_and_the_deletion_stays_until_the_next_round() {
    let conflict = Status::conflict(&SECRETS, "old", "the object has been modified");
    let once = Fault::on(Verb::Delete).resource(SECRETS).times(1).fail(conflict);
    let cluster = after_a_round(environment().prepare(|sandbox| drop(sandbox.faults().inject(once)))).await;
    assert!(has_old(cluster.sandbox()));
    cluster.advance(DAY).await;
    assert!(!has_old(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn while_pods_cannot_be_listed_no_secret_is_labelled_or_deleted() {
    let broken = Status::new(422, "Invalid", "no");
    let fault = Fault::on(Verb::List).resource(PODS).fail(broken);
    let cluster = after_a_round(environment().prepare(|sandbox| drop(sandbox.faults().inject(fault)))).await;
    assert_eq!(label(cluster.sandbox()), Some(Value::Null), "a pod may name it");
    assert!(has_old(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn a_period_of_zero_is_refused() {
    let cluster = TestEnvironment::new([DESCRIPTOR])
        .arguments(&["--legacy-service-account-token-clean-up-period=0s"])
        .allow_error("--legacy-service-account-token-clean-up-period")
        .start()
        .await;
    cluster.settle().await;
    let problem = cluster.handle().controllers().remove(0).problem().unwrap_or_default();
    assert!(problem.contains("give a period above zero"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn lost_responses_and_a_busy_server_change_nothing() {
    for fault in [
        Fault::on_writes().times(1).lose_answer(),
        Fault::on_writes().skip(1).times(1).lose_answer(),
        Fault::on(Verb::List).resource(SECRETS).times(3).fail(Status::too_many_requests(1)),
    ] {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault);
        cluster
            .eventually("both are done", |sandbox| label(sandbox) == Some(json!("2026-01-02")) && !has_old(sandbox))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster
            .eventually("both are done", |sandbox| label(sandbox) == Some(json!("2026-01-02")) && !has_old(sandbox))
            .await;
        cluster.advance(10 * SECOND).await;
    })
    .await;
    assert_eq!(writes, 2);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_cannot_be_read_holds_up_no_other() {
    let cluster = after_a_round(environment().prepare(|sandbox| {
        create_secret(sandbox, "bad");
        let labels = json!({ "metadata": { "labels": { "a": 5 } } });
        DirectClient::new(sandbox).merge(&SECRETS, &key("bad"), None, &labels).unwrap();
    }))
    .await;
    assert!(!has_old(cluster.sandbox()), "the round goes on");
    assert!(cluster.sandbox().get(&SECRETS, &key("bad")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_round_that_fails_is_repeated_after_ten_minutes() {
    let cluster = after_a_round(environment().prepare(|sandbox| {
        let expired = Status::new(410, "Expired", "the continue token has expired");
        sandbox.faults().inject(Fault::on(Verb::List).resource(SECRETS).times(1).fail(expired));
    }))
    .await;
    cluster.advance(Duration::from_mins(9)).await;
    assert!(has_old(cluster.sandbox()));
    cluster.advance(Duration::from_mins(2)).await;
    assert!(!has_old(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn the_wait_after_a_failed_round_does_not_delay_the_shutdown() {
    let environment = environment().prepare(|sandbox| {
        let fails = Status::new(500, "InternalError", "as the test wants it");
        sandbox.faults().inject(Fault::on(Verb::Get).resource(CONFIG_MAPS).fail(fails));
    });
    let cluster = after_a_round(environment).await;
    let begun = tokio::time::Instant::now();
    cluster.stop().await.expect("the manager must end");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}
