//! Failures, lost responses, late watches and kills.

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, Status, Verb};
use serde_json::json;

use super::{
    ACCOUNTS, SECOND, SECRETS, claims, create_secret, environment, is_filled, is_gone, key, reference, robot, start,
    writes,
};

#[tokio::test(start_paused = true)]
async fn a_secret_whose_version_differs_is_skipped_until_its_event_comes() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().delay_events(&SECRETS, 30 * SECOND);
    create_secret(cluster.sandbox(), "token");
    cluster.advance(29 * SECOND).await;
    // The cache will see the version before this one first.
    cluster.sandbox().patch(&SECRETS, &key("token"), &json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    cluster.advance(20 * SECOND).await;
    assert_eq!(writes(&cluster), [""; 0], "the live secret is newer than the cached one");
    let secret = is_filled(&cluster, "token").await;
    assert_eq!(secret["metadata"]["labels"]["a"], "b");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_the_cache_does_not_have_yet_is_read_before_its_secret_is_deleted() {
    let cluster = start(environment()).await;
    cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
    cluster.settle().await;
    cluster.sandbox().faults().delay_events(&ACCOUNTS, 300 * SECOND);
    let account = json!({ "metadata": { "namespace": "shop", "name": "robot" } });
    let account = cluster.sandbox().create(&ACCOUNTS, account).unwrap();
    create_secret(cluster.sandbox(), "token");
    cluster.consistently("it stays", 10 * SECOND, |sandbox| sandbox.get(&SECRETS, &key("token")).is_some()).await;
    let secret = is_filled(&cluster, "token").await;
    let uid = &claims(&secret)["kubernetes.io/serviceaccount/service-account.uid"];
    assert_eq!(*uid, account["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_an_account_that_is_recreated_while_the_watch_is_late_are_deleted() {
    let cluster = start(environment()).await;
    create_secret(cluster.sandbox(), "token");
    is_filled(&cluster, "token").await;
    cluster.sandbox().faults().delay_events(&ACCOUNTS, 30 * SECOND);
    cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
    cluster.sandbox().create(&ACCOUNTS, json!({ "metadata": { "namespace": "shop", "name": "robot" } })).unwrap();
    is_gone(&cluster, "token").await;
}

#[tokio::test(start_paused = true)]
async fn refusals_and_conflicts_are_tried_again() {
    let unavailable = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    for fault in [
        Fault::on(Verb::Update).times(5).fail(unavailable.clone()),
        Fault::on(Verb::Get).times(5).fail(unavailable),
        Fault::on_any().when(|target| target.verb != Verb::Watch).times(30).fail(Status::too_many_requests(1)),
        Fault::on(Verb::Update).times(1).fail(Status::conflict(&ACCOUNTS, "robot", "the object has been modified")),
    ] {
        let cluster = start(environment()).await;
        create_secret(cluster.sandbox(), "token");
        is_filled(&cluster, "token").await;
        reference(cluster.sandbox(), &["token"]);
        cluster.settle().await;
        cluster.sandbox().faults().inject(fault);
        cluster.sandbox().delete(&SECRETS, &key("token")).unwrap();
        cluster.eventually("the reference is gone", |sandbox| robot(sandbox).get("secrets").is_none()).await;
        create_secret(cluster.sandbox(), "next");
        is_filled(&cluster, "next").await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_responses_change_nothing() {
    for number in 0..4 {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        create_secret(cluster.sandbox(), "token");
        reference(cluster.sandbox(), &["token"]);
        let first = is_filled(&cluster, "token").await;
        cluster.advance(120 * SECOND).await;
        let later = is_filled(&cluster, "token").await;
        assert_eq!(first["data"], later["data"], "a token is signed once");
        cluster.sandbox().delete(&SECRETS, &key("token")).unwrap();
        cluster.eventually("the reference is gone", |sandbox| robot(sandbox).get("secrets").is_none()).await;
        create_secret(cluster.sandbox(), "next");
        is_filled(&cluster, "next").await;
        cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
        is_gone(&cluster, "next").await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[SECRETS, ACCOUNTS]).await;
        create_secret(cluster.sandbox(), "one");
        create_secret(cluster.sandbox(), "two");
        is_filled(cluster, "one").await;
        let two = is_filled(cluster, "two").await;
        cluster.settle().await;
        assert_eq!(cluster.sandbox().get(&SECRETS, &key("two")).unwrap()["data"], two["data"]);
        cluster.watches(&[SECRETS, ACCOUNTS]).await;
        cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
        is_gone(cluster, "one").await;
        is_gone(cluster, "two").await;
        cluster.settle().await;
    })
    .await;
    assert_eq!(writes, 4);
}
