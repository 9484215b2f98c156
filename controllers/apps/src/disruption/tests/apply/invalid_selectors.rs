//! Budgets whose selector is invalid, as an API server of another version may have stored them.

use std::time::Duration;

use kcm_testing::sandbox::{EVENTS, Sandbox};
use serde_json::{Value, json};

use super::{BUDGETS, Cluster, allowed, create_budget, create_ready, create_ready_pod, has, numbers, status};
use crate::disruption::tests::budget_json;
use crate::tests::cluster::key;
use crate::tests::fixtures::pod;

const MINUTE: Duration = Duration::from_mins(1);

/// Has the API server store budgets as they are, as if another version had checked them.
fn store_unchecked(sandbox: &Sandbox) {
    sandbox.unregister(&BUDGETS);
    sandbox.register(BUDGETS);
}

/// A requirement on the label `app`.
fn requirement(operator: &str, values: &Value) -> Value {
    json!({ "matchExpressions": [{ "key": "app", "operator": operator, "values": values }] })
}

/// Each invalid selector, and what is said of it.
fn invalid() -> [(&'static str, Value, &'static str); 8] {
    [
        (
            "an unknown operator",
            requirement("Near", &json!(["web"])),
            "\"Near\" is not a valid label selector operator",
        ),
        (
            "a label with an invalid value",
            json!({ "matchLabels": { "app": "w e b" } }),
            "label selector has the invalid value \"w e b\" for key \"app\"",
        ),
        (
            "a label with an invalid key",
            json!({ "matchLabels": { "a/b/c": "web" } }),
            "label selector has the invalid key \"a/b/c\"",
        ),
        (
            "an invalid value beside a valid one",
            requirement("In", &json!(["web", "-"])),
            "label selector has the invalid value \"-\" for key \"app\"",
        ),
        (
            "In without values",
            requirement("In", &json!([])),
            "label selector operator \"In\" needs a value for key \"app\"",
        ),
        (
            "NotIn without values",
            requirement("NotIn", &json!([])),
            "label selector operator \"NotIn\" needs a value for key \"app\"",
        ),
        (
            "Exists with a value",
            requirement("Exists", &json!(["web"])),
            "label selector operator \"Exists\" takes no values for key \"app\"",
        ),
        (
            "a requirement without an operator",
            json!({ "matchLabels": { "app": "web" }, "matchExpressions": [{ "key": "app" }] }),
            "\"\" is not a valid label selector operator",
        ),
    ]
}

async fn check(name: &str, selector: Value, message: &str) {
    let earlier = json!({
        "observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3,
        "disruptedPods": { "web-0": "2026-01-02T11:59:30Z" },
        "conditions": [{
            "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-02T11:00:00Z",
        }],
    });
    let spec = json!({ "minAvailable": 1, "selector": selector });
    let (computed, stored) = (earlier.clone(), spec.clone());
    let cluster = Cluster::start(move |sandbox| {
        store_unchecked(sandbox);
        create_ready(sandbox, 3);
        create_budget(sandbox, stored);
        sandbox.patch_status(&BUDGETS, &key("web"), &json!({ "status": computed })).unwrap();
        sandbox.create(&BUDGETS, budget_json("all", json!({ "minAvailable": 0, "selector": {} }))).unwrap();
    })
    .await;
    let mut expected = earlier;
    expected["disruptionsAllowed"] = json!(0);
    expected["conditions"] = json!([{
        "type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": message,
        "observedGeneration": 1, "lastTransitionTime": "2026-01-02T12:00:00Z",
    }]);
    cluster.eventually(&format!("{name} allows nothing"), |it| numbers(&status(it))[0] == 0).await;
    assert_eq!(cluster.status(), expected, "{name}: everything else stays as it was computed last");
    let other =
        |it: &Sandbox| it.get(&BUDGETS, &key("all")).expect("it is there")["status"]["disruptionsAllowed"].clone();
    cluster.eventually("the other budget is computed", |it| other(it) == 3).await;

    // Nothing that happens to others has it computed again.
    create_ready_pod(cluster.sandbox(), &pod("new").orphan().unassigned());
    cluster.eventually("the other budget counts the new pod", |it| other(it) == 4).await;
    cluster.advance(10 * MINUTE).await;
    cluster.kill();
    cluster.advance(10 * MINUTE).await;
    let written: Vec<_> = cluster.bodies("PUT").into_iter().filter(|put| put["metadata"]["name"] == "web").collect();
    assert_eq!(written.len(), 1, "{name} is written once: {written:?}");
    assert_eq!(written[0]["spec"], spec, "{name} stays as it was stored");
    let mut events = cluster.sandbox().list(&EVENTS, None);
    events.retain(|event| event["involvedObject"]["kind"] == "PodDisruptionBudget");
    let is_right = |event: &Value| {
        let said = ["type", "reason", "message"].map(|field| event[field].as_str().unwrap_or_default());
        said == ["Warning", "NoPods", &format!("Failed to get pods: {message}")]
            && event["involvedObject"]["name"] == "web"
    };
    assert!(!events.is_empty() && events.iter().all(is_right), "{name}: {events:?}");
    assert!(cluster.messages("MultiplePodDisruptionBudgets").is_empty(), "{name} selects no pod");

    let mut mended = cluster.object(&BUDGETS, "web");
    mended["spec"]["selector"] = json!({ "matchLabels": { "app": "web" } });
    cluster.sandbox().update(&BUDGETS, mended).unwrap();
    has(&cluster, [3, 4, 1, 4]).await;
    let condition = allowed(&cluster.status());
    assert_eq!(
        (&condition["reason"], &condition["observedGeneration"]),
        (&json!("SufficientPods"), &json!(2)),
        "{name}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_with_an_invalid_selector_allows_nothing_and_holds_up_no_other() {
    for (name, selector, message) in invalid() {
        check(name, selector, message).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_becomes_invalid_takes_back_what_was_allowed() {
    let cluster = Cluster::start(|sandbox| {
        store_unchecked(sandbox);
        create_ready(sandbox, 3);
    })
    .await;
    create_budget(cluster.sandbox(), json!({ "minAvailable": 1 }));
    has(&cluster, [2, 3, 1, 3]).await;
    for (_, selector, message) in invalid() {
        let mut budget = cluster.object(&BUDGETS, "web");
        budget["spec"]["selector"] = selector;
        cluster.sandbox().update(&BUDGETS, budget).unwrap();
        let said = |it: &Sandbox| allowed(&status(it))["message"] == message;
        cluster.eventually(&format!("the condition says: {message}"), said).await;
        assert_eq!(numbers(&cluster.status()), [0, 3, 1, 3]);
        assert_eq!(cluster.status()["observedGeneration"], 1, "what was computed is of the generation that was valid");
    }
}
