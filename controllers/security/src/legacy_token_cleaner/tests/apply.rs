//! Rounds on an API server in the process.

use std::time::Duration;

use kcm_api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::legacy_token_cleaner::DESCRIPTOR;
use crate::legacy_token_cleaner::observe::SecretMetadata;
use crate::shared::ServiceAccount;

const SECRETS: Resource = SecretMetadata::RESOURCE;
const ACCOUNTS: Resource = ServiceAccount::RESOURCE;
const DAY: Duration = Duration::from_hours(24);
const MINUTE: Duration = Duration::from_mins(1);
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// A namespace `shop` with the account `robot`, which references the secret `token`; tracked for long enough, with a period
/// of an hour. The start is the second of January at noon, so that the round of the third is the first to see the secret as
/// old.
fn environment() -> TestEnvironment {
    tracked(&json!({ "since": "2025-12-30" }))
}

fn tracked(data: &Value) -> TestEnvironment {
    let data = data.clone();
    TestEnvironment::new([DESCRIPTOR])
        .arguments(&["--legacy-service-account-token-clean-up-period=1h"])
        .namespace("shop")
        .prepare(move |sandbox| {
            let name = "kube-apiserver-legacy-service-account-token-tracking";
            let metadata = json!({ "namespace": "kube-system", "name": name });
            sandbox.create(&CONFIG_MAPS, json!({ "metadata": metadata, "data": data })).unwrap();
            let account =
                json!({ "metadata": { "namespace": "shop", "name": "robot" }, "secrets": [{ "name": "token" }] });
            sandbox.create(&ACCOUNTS, account).unwrap();
            create_secret(sandbox, "token");
        })
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

fn use_token(sandbox: &Sandbox, day: &str) {
    let labels = json!({ "metadata": { "labels": { "kubernetes.io/legacy-token-last-used": day } } });
    sandbox.patch(&SECRETS, &key("token"), &labels).expect("the secret is there");
}

fn requests(cluster: &TestCluster, verb: &str) -> Vec<Value> {
    let requests = cluster.requests_of("legacy-service-account-token-cleaner");
    let of_verb = requests.iter().filter(|request| request.method == verb);
    of_verb.map(|request| serde_json::from_str(&request.body).unwrap_or_default()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_unused_token_is_labelled_by_one_round_and_deleted_by_a_later_one() {
    let cluster = environment().start().await;
    let created = cluster.sandbox().get(&SECRETS, &key("token")).unwrap();
    cluster.advance(DAY - MINUTE).await;
    assert_eq!(label(cluster.sandbox()), Some(Value::Null), "it is young");
    cluster.advance(2 * MINUTE).await;
    assert_eq!(label(cluster.sandbox()), Some(json!("2026-01-03")));
    let before = cluster.sandbox().get(&SECRETS, &key("token")).unwrap();
    cluster.advance(DAY).await;
    assert_eq!(label(cluster.sandbox()), None, "it is deleted");
    let uid = &created["metadata"]["uid"];
    let patch = json!({ "metadata": { "labels": { INVALID_SINCE: "2026-01-03" }, "uid": uid } });
    assert_eq!(requests(&cluster, "PATCH"), [patch]);
    let preconditions = json!({ "uid": uid, "resourceVersion": before["metadata"]["resourceVersion"] });
    assert_eq!(requests(&cluster, "DELETE")[0]["preconditions"], preconditions);
}

#[tokio::test(start_paused = true)]
async fn the_data_of_a_secret_is_never_read_and_nothing_is_cached() {
    let cluster = environment().start().await;
    cluster.advance(DAY + MINUTE).await;
    assert_eq!(label(cluster.sandbox()), Some(json!("2026-01-03")));
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
async fn a_token_that_is_used_again_stays() {
    let cluster = environment().start().await;
    cluster.advance(DAY + MINUTE).await;
    assert_eq!(label(cluster.sandbox()), Some(json!("2026-01-03")));
    for day in ["2026-01-04", "unreadable"] {
        use_token(cluster.sandbox(), day);
        cluster.advance(DAY).await;
        assert!(label(cluster.sandbox()).is_some(), "{day}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_pod_names_and_what_a_person_made_stays() {
    let cluster = environment()
        .prepare(|sandbox| {
            create_secret(sandbox, "by-hand");
            let volumes = json!([{ "name": "token", "secret": { "secretName": "token" } }]);
            let spec = json!({ "containers": [{ "name": "main", "image": "image" }], "volumes": volumes });
            sandbox.create(&PODS, json!({ "metadata": { "namespace": "shop", "name": "pod" }, "spec": spec })).unwrap();
        })
        .start()
        .await;
    cluster.advance(DAY + MINUTE).await;
    assert_eq!(label(cluster.sandbox()), Some(Value::Null));
    cluster.sandbox().delete_now(&PODS, &key("pod")).unwrap();
    cluster.advance(DAY).await;
    assert_eq!(label(cluster.sandbox()), Some(json!("2026-01-04")), "without the pod it is labelled");
    let by_hand = cluster.sandbox().get(&SECRETS, &key("by-hand")).unwrap();
    assert_eq!(by_hand["metadata"].get("labels"), None);
}

#[tokio::test(start_paused = true)]
async fn without_a_day_since_when_tokens_are_tracked_or_too_soon_after_it_nothing_happens() {
    for data in [json!({}), json!({ "since": "lately" }), json!({ "since": "2026-01-03" })] {
        let cluster = tracked(&data).start().await;
        cluster.advance(DAY + MINUTE).await;
        assert_eq!(label(cluster.sandbox()), Some(Value::Null), "{data}");
        assert!(requests(&cluster, "PATCH").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_between_the_look_and_the_deletion_stays() {
    let cluster = environment().start().await;
    let conflict = Status::conflict(&SECRETS, "token", "the object has been modified");
    let once = Fault::on(Verb::Delete).resource(SECRETS).times(1).fail(conflict);
    cluster.sandbox().faults().inject(once);
    cluster.advance(2 * DAY + MINUTE).await;
    assert!(label(cluster.sandbox()).is_some(), "it is not tried again before the next round");
    cluster.advance(DAY).await;
    assert_eq!(label(cluster.sandbox()), None);
}

#[tokio::test(start_paused = true)]
async fn while_pods_cannot_be_listed_no_secret_is_labelled() {
    let cluster = environment().start().await;
    let broken = Status::new(422, "Invalid", "no");
    let down = cluster.sandbox().faults().inject(Fault::on(Verb::List).resource(PODS).fail(broken));
    cluster.advance(DAY + MINUTE).await;
    assert_eq!(label(cluster.sandbox()), Some(Value::Null), "a pod may name it");
    down.remove();
    cluster.advance(DAY).await;
    assert_eq!(label(cluster.sandbox()), Some(json!("2026-01-04")));
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
async fn lost_responses_change_nothing() {
    for number in 0..2 {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        cluster.advance(2 * DAY + MINUTE).await;
        assert_eq!(label(cluster.sandbox()), None);
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.advance(2 * DAY + MINUTE).await;
        assert_eq!(label(cluster.sandbox()), None);
    })
    .await;
    assert_eq!(writes, 2);
}
