//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, PODS, REPLICA_SETS, Sandbox, ScalePaths, Status, Verb};
use serde_json::json;

use super::owners::{WEBSITES, create_owner};
use super::{BUDGETS, Cluster, allowed, create_budget, create_ready, create_ready_pod, evict, has, numbers, status};
use crate::disruption::DESCRIPTOR;
use crate::disruption::tests::budget_json;
use crate::tests::cluster::{environment, key, now};
use crate::tests::fixtures::pod;

const MINUTE: Duration = Duration::from_mins(1);

fn add(sandbox: &Sandbox, name: &str) {
    create_ready_pod(sandbox, &pod(name).orphan().unassigned());
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment(&[DESCRIPTOR]).prepare(|sandbox| create_ready(sandbox, 3)),
        async |cluster| {
            cluster.watches(&[PODS, BUDGETS]).await;
            create_budget(cluster.sandbox(), json!({ "minAvailable": 2 }));
            has(cluster, [1, 3, 2, 3]).await;
            evict(cluster.sandbox(), "web-0").unwrap();
            has(cluster, [0, 2, 2, 2]).await;
            add(cluster.sandbox(), "new");
            has(cluster, [1, 3, 2, 3]).await;
            // A later start has nothing to do.
            cluster.settle().await;
        },
    )
    .await;
    assert!(writes >= 3, "{writes}");
}

/// The budget is read, an eviction is admitted, and only then the status is written.
#[tokio::test(start_paused = true)]
async fn a_status_is_never_written_over_an_eviction_that_it_does_not_know() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 3)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    has(&cluster, [2, 3, 1, 3]).await;
    cluster.settle().await;
    // The cache keeps the budget as it is, and learns of a change of the pods.
    cluster.sandbox().faults().hold_watches(&BUDGETS);
    evict(cluster.sandbox(), "web-0").unwrap();
    let admitted = numbers(&cluster.status());
    cluster.advance(MINUTE).await;
    assert_eq!(numbers(&cluster.status()), admitted, "the API server has refused what was computed of the old budget");
    assert!(!cluster.requests("PUT").is_empty());
    cluster.sandbox().faults().release_watches(&BUDGETS);
    has(&cluster, [1, 2, 1, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn lost_responses_late_watches_and_a_busy_server_change_nothing() {
    for number in 0..2 {
        let cluster = Cluster::start(|sandbox| create_ready(sandbox, 2)).await;
        let lost = cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
        has(&cluster, [1, 2, 1, 2]).await;
        add(cluster.sandbox(), "new");
        has(&cluster, [2, 3, 1, 3]).await;
        cluster.advance(MINUTE).await;
        assert_eq!((numbers(&cluster.status()), lost.hits()), ([2, 3, 1, 3], 1), "{number}");
        assert_eq!(allowed(&cluster.status())["reason"], "SufficientPods");
    }

    let cluster = Cluster::start(|sandbox| sandbox.faults().delay_events(&PODS, MINUTE)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    create_ready(cluster.sandbox(), 2);
    has(&cluster, [1, 2, 1, 2]).await;

    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(30).fail(Status::too_many_requests(1));
    let cluster = Cluster::start(move |sandbox| {
        sandbox.faults().inject(busy);
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    create_ready(cluster.sandbox(), 2);
    has(&cluster, [1, 2, 1, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_is_followed_by_one_that_allows_nothing() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 2)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    has(&cluster, [1, 2, 1, 2]).await;
    cluster.settle().await;
    let refused = Fault::on(Verb::Update).resource(BUDGETS).times(1).fail(Status::new(422, "Invalid", "it is wrong"));
    cluster.sandbox().faults().inject(refused);
    add(cluster.sandbox(), "new");
    has(&cluster, [2, 3, 1, 3]).await;
    let sent: Vec<_> =
        cluster.bodies("PUT").iter().map(|put| (numbers(&put["status"]), allowed(&put["status"]))).collect();
    let [(_, _), (refused, _), (safe, failed), (computed, _)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((refused, safe, computed), (&[2, 3, 1, 3], &[0, 2, 1, 2], &[2, 3, 1, 3]));
    assert_eq!((&failed["reason"], &failed["message"]), (&json!("SyncFailed"), &json!("it is wrong")));
    let _errors = cluster.take_errors();
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_recreated_or_deleted_is_no_error() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 2)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    has(&cluster, [1, 2, 1, 2]).await;
    cluster.sandbox().delete_now(&BUDGETS, &key("web")).unwrap();
    create_budget(cluster.sandbox(), json!({ "minAvailable": 2 }));
    has(&cluster, [0, 2, 2, 2]).await;
    cluster.sandbox().faults().hold_watches(&BUDGETS);
    cluster.sandbox().delete_now(&BUDGETS, &key("web")).unwrap();
    add(cluster.sandbox(), "new");
    cluster.advance(MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_hangs_holds_up_other_budgets_only_where_there_is_one_worker() {
    for workers in [1, 2] {
        let argument = format!("--concurrent-disruption-syncs={workers}");
        let environment = environment(&[DESCRIPTOR]).arguments(&[&argument]).prepare(|sandbox| {
            sandbox.register_scaled(WEBSITES, ScalePaths::default());
            create_owner(sandbox, &WEBSITES, "site", 2);
            create_ready_pod(sandbox, &pod("other").orphan().unassigned().labels(json!({ "app": "other" })));
        });
        let cluster = environment.start().await;
        cluster.watches(&[PODS, BUDGETS]).await;
        let hanging = cluster.sandbox().faults().inject(Fault::on(Verb::Get).subresource("scale").stall());
        create_budget(cluster.sandbox(), json!({ "maxUnavailable": 1 }));
        cluster.eventually("a scale is requested", |_| hanging.hits() == 1).await;
        let selector = json!({ "matchLabels": { "app": "other" } });
        let other = budget_json("other", json!({ "minAvailable": 0, "selector": selector }));
        cluster.sandbox().create(&BUDGETS, other).unwrap();
        cluster.settle().await;
        let is_computed =
            |sandbox: &Sandbox| sandbox.get(&BUDGETS, &key("other")).unwrap()["status"]["disruptionsAllowed"] == 1;
        assert_eq!(is_computed(cluster.sandbox()), workers == 2, "{workers} workers");
        cluster.eventually("the other one is computed when the request has timed out", is_computed).await;
        hanging.remove();
        has(&cluster, [0, 1, 1, 2]).await;
        let _errors = cluster.take_errors();
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_does_not_delay_the_end_of_an_eviction() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 2)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 0 }));
    has(&cluster, [2, 2, 0, 2]).await;
    // As the API server writes it, before it deletes the pod; which fails.
    let admitted =
        json!({ "status": { "disruptionsAllowed": 1, "disruptedPods": { "web-0": "2026-01-02T12:00:00Z" } } });
    cluster.sandbox().patch_status(&BUDGETS, &key("web"), &admitted).unwrap();
    has(&cluster, [1, 1, 0, 2]).await;
    cluster.advance(3 * MINUTE / 2).await;
    // A missing permission is retried after a minute, which is half a minute after the end of the eviction.
    let refused = Status::forbidden(&BUDGETS, "web", "User \"u\" cannot update");
    let refused = cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(BUDGETS).fail(refused));
    add(cluster.sandbox(), "new");
    // The next manager learns the end of the eviction in the reconcile whose write fails.
    cluster.kill();
    cluster.advance(MINUTE / 6).await;
    assert!(refused.hits() > 0);
    refused.remove();
    has(&cluster, [3, 3, 0, 3]).await;
    let waited = cluster.sandbox().now().duration_since(now()).as_secs();
    assert!((120..123).contains(&waited), "after {waited} s");
    drop(cluster.take_errors());
}

/// It may be healthy, and an eviction of another Pod is allowed without it.
#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_decoded_allows_no_additional_disruption() {
    for min_available in [json!(1), json!("50%")] {
        let (before, after) = ([1, 2, 1, 2], [0, 1, 1, 1]);
        let environment = environment(&[DESCRIPTOR]).allow_error("Object cannot be decoded").prepare(|sandbox| {
            create_owner(sandbox, &REPLICA_SETS, "a", 1);
            create_owner(sandbox, &REPLICA_SETS, "b", 1);
        });
        let cluster = environment.start().await;
        cluster.watches(&[PODS, BUDGETS]).await;
        create_budget(cluster.sandbox(), json!({ "minAvailable": min_available }));
        has(&cluster, before).await;
        let broken = json!({ "status": { "conditions": "none" } });
        DirectClient::new(cluster.sandbox()).merge(&PODS, &key("a-0"), Some("status"), &broken).unwrap();
        has(&cluster, after).await;
        cluster.consistently("it stays", MINUTE * 10, |sandbox| numbers(&status(sandbox)) == after).await;
        let mended = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        DirectClient::new(cluster.sandbox()).merge(&PODS, &key("a-0"), Some("status"), &mended).unwrap();
        has(&cluster, before).await;
    }
}
