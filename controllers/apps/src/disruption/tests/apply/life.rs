//! A budget from its creation to its end.

use std::time::Duration;

use kcm_testing::sandbox::{EVENTS, Fault, PODS, Status, Verb};
use serde_json::json;

use super::{BUDGETS, Cluster, allowed, create_budget, create_ready, create_ready_pod, evict, has, numbers};
use crate::disruption::tests::budget_json;
use crate::tests::cluster::key;
use crate::tests::fixtures::pod;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_status_follows_the_pods_and_is_written_whole() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 2)).await;
    let created = create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    has(&cluster, [1, 2, 1, 2]).await;
    cluster.settle().await;
    let sent = cluster.bodies("PUT");
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(
        (&sent[0]["spec"], &sent[0]["metadata"]["resourceVersion"]),
        (&created["spec"], &created["metadata"]["resourceVersion"],)
    );
    let expected = json!({
        "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-02T12:00:00Z",
    });
    let mut written = allowed(&cluster.status());
    written["message"] = json!("");
    assert_eq!(written, expected);
    assert_eq!(cluster.status()["observedGeneration"], 1);

    cluster.sandbox().set_pod_ready(&key("web-0"), false, crate::tests::cluster::now()).unwrap();
    has(&cluster, [0, 1, 1, 2]).await;
    assert_eq!(allowed(&cluster.status())["reason"], "InsufficientPods");
    create_ready_pod(cluster.sandbox(), &pod("web-2").orphan());
    has(&cluster, [1, 2, 1, 3]).await;
    cluster.sandbox().patch(&BUDGETS, &key("web"), &json!({ "spec": { "minAvailable": 0 } })).unwrap();
    has(&cluster, [2, 2, 0, 3]).await;
    assert_eq!(cluster.status()["observedGeneration"], 2);
    let relabelled = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.sandbox().patch(&PODS, &key("web-2"), &relabelled).unwrap();
    has(&cluster, [1, 1, 0, 2]).await;
    cluster.sandbox().delete_now(&PODS, &key("web-1")).unwrap();
    has(&cluster, [0, 0, 0, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_at_rest() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 2)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    has(&cluster, [1, 2, 1, 2]).await;
    cluster.settle().await;
    cluster.kill();
    cluster.advance(600 * SECOND).await;
    assert_eq!(cluster.requests("PUT").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_without_pods_allows_nothing_and_says_so() {
    let cluster = Cluster::start(|_| {}).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 0 }));
    cluster.eventually("it is observed", |_| cluster.status()["observedGeneration"] == 1).await;
    assert_eq!(numbers(&cluster.status()), [0; 4]);
    cluster.eventually("it is said", |_| cluster.messages("NoPods") == ["No matching pods found"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_admitted_eviction_counts_until_the_pod_is_gone_or_two_minutes_are_over() {
    let cluster = Cluster::start(|sandbox| {
        create_ready(sandbox, 2);
        let kept = json!({ "metadata": { "finalizers": ["example.com/kept"] } });
        sandbox.patch(&PODS, &key("web-0"), &kept).unwrap();
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 0 }));
    has(&cluster, [2, 2, 0, 2]).await;
    // As the API server writes it, before it deletes the pod; which fails.
    let admitted = json!({ "status": { "disruptionsAllowed": 1, "disruptedPods": { "web-0": "2026-01-02T12:00:00Z", "gone": "2026-01-02T12:00:00Z" } } });
    cluster.sandbox().patch_status(&BUDGETS, &key("web"), &admitted).unwrap();
    has(&cluster, [1, 1, 0, 2]).await;
    assert_eq!(cluster.status()["disruptedPods"], json!({ "web-0": "2026-01-02T12:00:00Z" }));
    cluster.advance(100 * SECOND).await;
    assert_eq!(numbers(&cluster.status()), [1, 1, 0, 2]);
    has(&cluster, [2, 2, 0, 2]).await;
    let waited = cluster.sandbox().now().duration_since(crate::tests::cluster::now()).as_secs();
    assert!((120..123).contains(&waited), "after {waited} s");
    assert!(cluster.status()["disruptedPods"].as_object().is_none_or(serde_json::Map::is_empty));
    let message = "Pod was expected by PDB shop/shop to be deleted but it wasn't";
    cluster.eventually("it is said", |_| cluster.messages("NotDeleted") == [message]).await;
}

#[tokio::test(start_paused = true)]
async fn evictions_are_admitted_by_the_status() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 3)).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 2 }));
    has(&cluster, [1, 3, 2, 3]).await;
    evict(cluster.sandbox(), "web-0").unwrap();
    assert_eq!(evict(cluster.sandbox(), "web-1").unwrap_err().code, 429);
    has(&cluster, [0, 2, 2, 2]).await;
    assert_eq!(evict(cluster.sandbox(), "web-1").unwrap_err().code, 429);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_several_budgets_counts_for_each_of_them_and_is_warned_of() {
    let cluster = Cluster::start(|_| {}).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    cluster.sandbox().create(&BUDGETS, budget_json("all", json!({ "minAvailable": 0, "selector": {} }))).unwrap();
    cluster.settle().await;
    create_ready(cluster.sandbox(), 2);
    has(&cluster, [1, 2, 1, 2]).await;
    let other = || cluster.object(&BUDGETS, "all")["status"]["disruptionsAllowed"].clone();
    cluster.eventually("the other counts too", |_| other() == 2).await;
    let message = "Pod \"shop\"/\"web-0\" matches multiple PodDisruptionBudgets.  Chose \"all\" arbitrarily.";
    let warned = |_: &_| cluster.messages("MultiplePodDisruptionBudgets").contains(&message.to_owned());
    cluster.eventually("it is warned of", warned).await;
}

#[tokio::test(start_paused = true)]
async fn a_stale_condition_of_a_pod_becomes_false() {
    let cluster = Cluster::start(|sandbox| {
        create_ready(sandbox, 1);
        let conditions = json!([
            { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T12:00:00Z" },
            {
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m",
                "lastProbeTime": "2026-01-02T11:00:00Z", "lastTransitionTime": "2026-01-02T12:00:00Z",
            },
        ]);
        sandbox.patch_status(&PODS, &key("web-0"), &json!({ "status": { "conditions": conditions } })).unwrap();
    })
    .await;
    let condition = |index: usize| cluster.object(&PODS, "web-0")["status"]["conditions"][index].clone();
    cluster.advance(119 * SECOND).await;
    assert!(cluster.requests("PATCH").is_empty());
    cluster.eventually("it is false", |_| condition(1)["status"] == "False").await;
    let waited = cluster.sandbox().now().duration_since(crate::tests::cluster::now()).as_secs();
    assert!((120..123).contains(&waited), "after {waited} s");
    assert!(condition(1).get("reason").is_none() && condition(1).get("message").is_none(), "{}", condition(1));
    assert!(condition(1)["lastProbeTime"].is_null(), "{}", condition(1));
    assert_eq!(condition(0)["status"], "True", "the other condition stays");
    cluster.advance(600 * SECOND).await;
    assert_eq!(cluster.requests("PATCH").len(), 1);
}

/// Gives a pod the condition of an eviction at the start of the test.
fn set_disruption_target(cluster: &Cluster, name: &str) {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": "2026-01-02T12:00:00Z",
    });
    let patch = json!({ "status": { "conditions": [condition] } });
    cluster.sandbox().patch_status(&PODS, &key(name), &patch).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_condition_stays_where_the_pod_is_deleted_or_has_ended() {
    let cluster = Cluster::start(|sandbox| create_ready(sandbox, 4)).await;
    for name in ["web-0", "web-1", "web-2", "web-3"] {
        set_disruption_target(&cluster, name);
    }
    let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    cluster.sandbox().patch(&PODS, &key("web-0"), &held).unwrap();
    cluster.sandbox().delete(&PODS, &key("web-0")).unwrap();
    for (name, phase) in [("web-1", "Failed"), ("web-2", "Succeeded")] {
        cluster.sandbox().set_pod_phase(&key(name), phase).unwrap();
    }
    cluster.advance(600 * SECOND).await;
    let patched: Vec<String> = cluster.requests("PATCH").into_iter().map(|request| request.path).collect();
    assert_eq!(patched, ["/api/v1/namespaces/shop/pods/web-3/status"], "only the one that runs");
    for name in ["web-0", "web-1", "web-2"] {
        assert_eq!(cluster.object(&PODS, name)["status"]["conditions"][0]["status"], "True", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_several_budgets_is_warned_of_when_it_changes_and_not_when_its_condition_is_stale() {
    let cluster = Cluster::start(|_| {}).await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    cluster.sandbox().create(&BUDGETS, budget_json("all", json!({ "minAvailable": 0, "selector": {} }))).unwrap();
    cluster.settle().await;
    create_ready(cluster.sandbox(), 1);
    set_disruption_target(&cluster, "web-0");
    // How often it was warned of: equal events are counted in one.
    let warned = || {
        let events = cluster.sandbox().list(&EVENTS, None);
        let of_reason = events.iter().filter(|event| event["reason"] == "MultiplePodDisruptionBudgets");
        of_reason.map(|event| event["count"].as_i64().expect("events have counts")).sum::<i64>()
    };
    cluster.eventually("it is warned of", |_| warned() > 0).await;
    cluster.advance(60 * SECOND).await;
    let before = warned();
    // Two writes of the condition fail, and are tried again.
    let failing =
        Fault::on(Verb::Patch).resource(PODS).times(2).fail(Status::new(500, "InternalError", "it is broken"));
    let failing = cluster.sandbox().faults().inject(failing);
    cluster.advance(300 * SECOND).await;
    assert_eq!(cluster.object(&PODS, "web-0")["status"]["conditions"][0]["status"], "False");
    assert_eq!((warned() - before, failing.hits()), (1, 2), "the change of the condition is one of the pod");
    let _errors = cluster.take_errors();
}
