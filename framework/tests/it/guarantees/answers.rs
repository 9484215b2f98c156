//! The meaning of a response of the API server for its write: the repetition, the hold of the key, and the next try.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::Delete;
use kcm_framework::client::{ApiError, Patch, Payload};
use kcm_sandbox_apiserver::{Fault, Sandbox, Status, Verb};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::guarantees::support::{Options, PARTS, SETS, Turn, World, key, part, sandbox, seconds, settle};

/// A write is given 30 s by the API server and 4 s for the network.
const DEADLINE: Duration = Duration::from_secs(34);

fn unavailable(retry_after: Option<u32>) -> Status {
    let status = Status::new(503, "ServiceUnavailable", "the server is starting");
    match retry_after {
        Some(seconds) => status.retry_after(seconds),
        None => status,
    }
}

fn failed_webhook() -> Status {
    let message = "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: refused";
    Status::new(500, "InternalError", message)
}

/// The tests here are named after the sentences of the page of `consistency`.
#[test]
fn every_sentence_of_the_page_has_a_test() {
    let page: String = include_str!("../../../src/consistency/mod.rs")
        .lines()
        .skip_while(|line| *line != "//! # Contract")
        .take_while(|line| line.starts_with("//!"))
        .flat_map(|line| [line.trim_start_matches("//!").trim(), " "])
        .collect();
    let tests = [include_str!("answers.rs"), include_str!("writes.rs"), include_str!("live_checks.rs")].concat();
    let promised: Vec<&str> = page.split("**").skip(1).step_by(2).collect();
    assert!(promised.len() > 15, "{promised:#?}");
    for sentence in promised {
        let letters = sentence.to_lowercase().replace(['.', ',', '\''], "");
        let name = letters.split_whitespace().collect::<Vec<_>>().join("_");
        assert!(tests.contains(&format!("async fn {name}()")), "no test is named {name}");
    }
}

fn creations() -> Fault {
    Fault::on(Verb::Create).resource(PARTS)
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_429_or_5xx_with_a_time_is_repeated_after_it_beneath_the_reconcile() {
    for status in [Status::too_many_requests(2), unavailable(Some(2))] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        world.sandbox.faults().inject(creations().times(3).fail(status));
        world.create_set("a", 1);
        assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(6)]);
        settle().await;
        assert_eq!(world.request_times("POST"), [0, 2, 4, 6].map(seconds));
        assert_eq!((world.parts().len(), world.parked().len()), (1, 0));
        assert!(world.has_result("success") && !world.has_result("unavailable"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_repeated_ten_times_and_within_its_time() {
    for (retry_after, sent) in [(1, 11), (10, 4), (40, 1)] {
        let world = World::start(|turn| {
            async move {
                let refused = turn.number == 0 && turn.create_part().await.is_err();
                assert_eq!(refused, turn.number == 0);
                Ok(())
            }
            .boxed()
        })
        .await;
        world.sandbox.faults().inject(creations().fail(Status::too_many_requests(retry_after)));
        world.create_set("a", 1);
        tokio::time::sleep(seconds(100)).await;
        assert_eq!(world.request_times("POST").len(), sent, "{retry_after}");
        assert!(world.parked().is_empty(), "none of them took effect");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_without_a_time_is_the_callers() {
    for status in [Status::new(429, "TooManyRequests", "no"), Status::new(403, "Forbidden", "no")] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        world.sandbox.faults().inject(creations().times(1).fail(status));
        world.create_set("a", 1);
        assert_eq!(world.visited(2).await[..2], [0, 5].map(Duration::from_millis));
        settle().await;
        assert_eq!(world.parts().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_creation_that_had_taken_effect_makes_one_object() {
    for (name, first) in [
        ("the first took effect", creations().times(1).lose_answer()),
        ("the first did not", creations().times(1).disconnect()),
    ] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        world.sandbox.faults().inject(first);
        world.sandbox.faults().inject(creations().skip(1).times(2).fail(unavailable(Some(1))));
        world.create_set("a", 1);
        tokio::time::sleep(seconds(100)).await;
        assert_eq!((world.parts().len(), world.request_times("POST").len()), (1, 4), "{name}");
        assert!(world.parked().is_empty(), "{name}");
    }
}

/// Creates part `p` of set `a`, with a controller if it has one.
async fn create_p(turn: &Turn<'_>, controller: Option<&str>) -> Result<(), ApiError> {
    let mut object = part("p", "a");
    if let Some(uid) = controller {
        object["metadata"]["ownerReferences"] = json!([owner(uid)]);
    }
    let written = turn.session.of(&PARTS).create(&key("p"), Payload::json(&object)).await?;
    assert_eq!(written.key, key("p"));
    Ok(())
}

fn owner(uid: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Set", "name": "a", "uid": uid, "controller": true})
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_on_a_repeat_is_compared_with_what_was_sent() {
    let existing = |controller: Option<&str>, set: &str| {
        let mut object = part("p", set);
        object["metadata"]["ownerReferences"] = controller.map(|uid| json!([owner(uid)])).into();
        Some(object)
    };
    for (name, before, controller, expected) in [
        ("it was made by the first attempt", None, Some("u"), "created"),
        ("of the same controller and labels", existing(Some("u"), "a"), Some("u"), "created"),
        ("of another controller", existing(Some("v"), "a"), Some("u"), "exists"),
        ("without a controller", existing(None, "a"), Some("u"), "exists"),
        ("of other labels", existing(Some("u"), "b"), Some("u"), "exists"),
        ("what was sent names no controller", None, None, "probably created"),
    ] {
        let returned = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::clone(&returned);
        let world = World::start(move |turn| {
            let answers = Arc::clone(&answers);
            async move {
                if turn.number == 0 && turn.key.name() == "a" {
                    let answer = create_p(&turn, controller).await;
                    answers.lock().push(match answer {
                        Ok(()) => "created",
                        Err(error) if error.is_already_exists() && !error.response_lost() => "exists",
                        Err(error) if error.is_probably_created() => "probably created",
                        Err(_) => "failed",
                    });
                }
                Ok(())
            }
            .boxed()
        })
        .await;
        let first = creations().times(1);
        world.sandbox.faults().hold_watches(&PARTS);
        if let Some(object) = before {
            world.sandbox.create(&PARTS, object).unwrap();
            world.sandbox.faults().inject(first.disconnect());
        } else {
            world.sandbox.faults().inject(first.lose_answer());
        }
        world.create_set("a", 0);
        world.visited(1).await;
        settle().await;
        assert_eq!(*returned.lock(), [expected], "{name}");
        assert_eq!(world.parked().len(), usize::from(expected != "exists"), "{name}");
        world.sandbox.faults().release_watches(&PARTS);
        settle().await;
        assert!(world.parked().is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_name_the_server_chooses_stays_in_doubt_after_a_repeated_error_of_the_server() {
    for (status, doubt) in [(unavailable(Some(1)), true), (Status::too_many_requests(1), false)] {
        let world = World::start(|turn| {
            async move {
                if turn.number == 0 && turn.key.name() == "a" {
                    let mut object = part("", "other");
                    object["metadata"] = json!({"generateName": "a-", "labels": {"set": "other"}});
                    let unnamed = kcm_api::ObjectKey::namespaced("default", "");
                    let written = turn.session.of(&PARTS).create(&unnamed, Payload::json(&object)).await?;
                    assert!(written.key.name().starts_with("a-"));
                }
                Ok(())
            }
            .boxed()
        })
        .await;
        world.sandbox.faults().inject(creations().times(1).fail(status));
        world.create_set("a", 0);
        world.visited(1).await;
        settle().await;
        assert_eq!((world.parts().len(), world.parked().len()), (1, usize::from(doubt)));
        tokio::time::sleep(seconds(30)).await;
        assert_eq!(world.parked().len(), usize::from(doubt), "until the first attempt can no longer take effect");
        // And until the cache has reached what a list showed then: the next event or bookmark.
        tokio::time::sleep(seconds(5)).await;
        world.sandbox.create(&PARTS, part("p", "other")).unwrap();
        settle().await;
        assert!(world.parked().is_empty());
    }
}

/// A write of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Create,
    Put,
    PatchOfUid,
    PatchOfName,
    Delete,
}

async fn change(turn: &Turn<'_>, change: Change) -> Result<(), ApiError> {
    let p = turn.parts().remove(0);
    let (uid, version) = (&p.metadata.uid, &p.metadata.resource_version);
    let labels = json!({"set": "a", "changed": "yes"});
    let patch = match change {
        Change::Create => return turn.create_part().await.map(drop),
        Change::Put => {
            let mut object = part("p", "a");
            object["metadata"]["resourceVersion"] = Value::String(version.to_string());
            object["metadata"]["labels"] = labels;
            let object = Payload::json(&object);
            return turn.session.of(&PARTS).update(&key("p"), object).await.map(drop);
        }
        Change::Delete => {
            let options = Delete::default();
            return turn.session.of(&PARTS).delete(&key("p"), uid, &options).await.map(drop);
        }
        Change::PatchOfUid => json!({"metadata": {"uid": uid, "labels": labels}}),
        Change::PatchOfName => json!({"metadata": {"labels": labels}}),
    };
    let patch = Patch::Merge(Payload::json(&patch));
    turn.session.of(&PARTS).patch(&key("p"), patch).await.map(drop)
}

/// A world in which the first reconcile of set `a` makes one write that is answered `status`, and what it returned.
async fn answered(kind: Change, status: Status) -> (World, Arc<Mutex<Vec<Result<(), ApiError>>>>) {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let returned = Arc::clone(&answers);
    let world = World::start(move |turn| {
        let returned = Arc::clone(&returned);
        async move {
            if turn.number == 0 {
                let answer = change(&turn, kind).await;
                returned.lock().push(answer);
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().inject(Fault::on_writes().resource(PARTS).times(1).fail(status));
    world.sandbox.create(&PARTS, part("p", "a")).unwrap();
    world.visited(1).await;
    settle().await;
    (world, answers)
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_holds_the_key_unless_a_second_landing_would_be_refused() {
    for (kind, holds) in [
        (Change::Create, true),
        (Change::PatchOfName, true),
        (Change::Put, false),
        (Change::PatchOfUid, true),
        (Change::Delete, false),
    ] {
        let (world, answers) = answered(kind, unavailable(None)).await;
        assert!(answers.lock()[0].is_err(), "{kind:?}");
        assert_eq!(world.parked().len(), usize::from(holds), "{kind:?}");
        tokio::time::sleep(DEADLINE).await;
        assert!(world.parked().is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_500_without_a_reason_holds_the_key_until_a_live_list_that_begins_at_once() {
    let kinds = [Change::Create, Change::PatchOfName, Change::Put, Change::PatchOfUid, Change::Delete];
    for (kind, lists) in kinds.into_iter().zip([1, 1, 0, 1, 0]) {
        let (world, answers) = answered(kind, Status::new(500, "", "the plugin failed")).await;
        assert!(answers.lock()[0].is_err(), "{kind:?}");
        assert_eq!((world.live_checks().len(), world.parked().len()), (lists, 0), "{kind:?}");
    }
}

/// A client behind a gateway that answers 503 to the first patch, although the API server has executed it.
fn behind_gateway(sandbox: &Sandbox) -> kube::Client {
    let (client, has_failed) = (sandbox.client(), Arc::new(AtomicBool::new(false)));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, has_failed) = (client.clone(), Arc::clone(&has_failed));
        async move {
            let is_patch = request.method() == http::Method::PATCH;
            let mut response = client.send(request).await?;
            if is_patch && !has_failed.swap(true, Ordering::Relaxed) {
                *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                *response.body_mut() = Body::from(b"no healthy upstream".to_vec());
            }
            Ok::<_, kube::Error>(response)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_step_is_not_taken_twice_if_a_gateway_fails_after_its_patch_took_effect() {
    let sandbox = sandbox();
    let options = Options { client: Some(behind_gateway(&sandbox)), ..Options::default() };
    let world = World::with(options, &sandbox, |turn| {
        async move {
            // The label is the step.
            if turn.wanted() == 1 {
                turn.create_part().await?;
                let patch = json!({"metadata": {"uid": turn.uid(), "labels": {"count": "2"}}});
                turn.session.of(&SETS).patch(turn.key, Patch::Merge(Payload::json(&patch))).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    sandbox.faults().delay_events(&SETS, seconds(5));
    world.create_set("a", 1);
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(sandbox.list(&SETS, None)[0]["metadata"]["labels"]["count"], "2");
    assert_eq!((world.parts().len(), world.parked().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_a_failing_webhook_settles_a_write() {
    for kind in [Change::Create, Change::PatchOfName, Change::Put, Change::PatchOfUid, Change::Delete] {
        let (world, answers) = answered(kind, failed_webhook()).await;
        assert!(answers.lock()[0].as_ref().is_err_and(|error| !error.response_lost()), "{kind:?}");
        assert!(world.parked().is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_acts_within_a_second_of_the_recovery_of_a_webhook_that_failed_for_ten_seconds() {
    for failing in 1..=15 {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        let failing = seconds(failing);
        let fault = world.sandbox.faults().inject(creations().fail(failed_webhook()));
        world.create_set("a", 1);
        tokio::time::sleep(failing).await;
        fault.remove();
        assert!(world.parts().is_empty());
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(world.parts().len(), 1, "{failing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_scaled_down_while_a_webhook_refuses_its_creations() {
    let world = World::start(|turn| {
        async move {
            let parts = turn.parts();
            for part in parts.iter().skip(turn.wanted()) {
                turn.delete_part(part.metadata.key.name(), &part.metadata.uid).await?;
            }
            turn.create_missing().await
        }
        .boxed()
    })
    .await;
    world.create_set("a", 3);
    settle().await;
    world.sandbox.faults().inject(creations().fail(failed_webhook()));
    world.scale_set("a", 5);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(world.parts().len(), 3);
    world.scale_set("a", 1);
    settle().await;
    assert_eq!(world.parts().len(), 1, "at once, not after a back-off");
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_or_a_quota_refused_is_tried_again_without_the_controllers_doing() {
    for status in [
        Status::new(400, "BadRequest", "admission webhook \"a.example.com\" denied the request: no"),
        Status::new(403, "Forbidden", "parts \"p\" is forbidden: exceeded quota: q"),
        Status::new(422, "Invalid", "parts \"p\" is invalid: no"),
    ] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        world.sandbox.faults().inject(creations().times(3).fail(status));
        world.create_set("a", 1);
        settle().await;
        assert_eq!(world.visited(4).await[..4], [0, 5, 15, 35].map(Duration::from_millis));
        settle().await;
        assert_eq!(world.parts().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_answers_429_to_a_tenth_of_all_requests_changes_nothing_but_the_time() {
    let mut hits = 0;
    for seed in 0..20 {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        let rng = Mutex::new(fastrand::Rng::with_seed(seed));
        let a_tenth = Fault::on_any().when(move |_| rng.lock().u8(0..10) == 0);
        let fault = world.sandbox.faults().inject(a_tenth.fail(Status::too_many_requests(1)));
        for name in ["a", "b", "c", "d"] {
            world.create_set(name, 10);
        }
        tokio::time::sleep(seconds(100)).await;
        assert_eq!((world.parts().len(), world.parked().len()), (40, 0), "seed {seed}");
        assert!(!world.has_result("unavailable"), "seed {seed}");
        hits += fault.hits();
    }
    assert!(hits > 50, "{hits}");
}
