//! A write whose connection broke is repeated, and nothing happens twice for that.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::client::{ApiError, Deleted, Patch, Payload};
use kcm_sandbox_apiserver::{ConnectionLost, Cut, Fault, Sandbox, Status, Verb};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::guarantees::support::{Options, PARTS, Turn, World, key, part, sandbox, seconds, settle};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A write of a reconcile to part `p` of set `a`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Put,
    Patch,
    PatchByOperations,
    Delete,
}

async fn change(turn: &Turn<'_>, change: Change) -> Result<Option<Deleted>, ApiError> {
    let p = turn.parts().remove(0);
    let (uid, version) = (&p.metadata.uid, &p.metadata.resource_version);
    let labels = json!({"set": "a", "changed": "yes"});
    let patch = match change {
        Change::Put => {
            let mut object = part("p", "a");
            object["metadata"]["resourceVersion"] = Value::String(version.to_string());
            object["metadata"]["labels"] = labels;
            let object = Payload::json(&object);
            return turn.session.of(&PARTS).update(&key("p"), object).await.map(|_| None);
        }
        Change::Delete => return turn.delete_part("p", uid).await.map(Some),
        Change::Patch => Patch::Merge(Payload::json(&json!({"metadata": {"uid": uid, "labels": labels}}))),
        Change::PatchByOperations => {
            Patch::Json(Payload::json(&json!([{"op": "add", "path": "/metadata/labels/changed", "value": "yes"}])))
        }
    };
    turn.session.of(&PARTS).patch(&key("p"), patch).await.map(|_| None)
}

/// A world in which the first reconcile of set `a` changes part `p`, and its response.
async fn changing(kind: Change) -> (World, Arc<Mutex<Vec<Result<Option<Deleted>, ApiError>>>>) {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&answers);
    let world = World::start(move |turn| {
        let told = Arc::clone(&told);
        async move {
            if turn.number == 0 {
                let answer = change(&turn, kind).await;
                told.lock().push(answer);
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    (world, answers)
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_connection_breaks_once_costs_no_time_and_makes_one_object() {
    for (name, fault) in [
        ("took effect", Fault::on(Verb::Create).resource(PARTS).times(1).lose_answer()),
        ("did not reach the server", Fault::on(Verb::Create).resource(PARTS).times(1).disconnect()),
    ] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        world.sandbox.faults().inject(fault);
        world.create_set("a", 1);
        assert!(world.visited(2).await[1] < millis(50), "{name}");
        tokio::time::sleep(seconds(100)).await;
        assert_eq!((world.parts().len(), world.request_times("POST").len()), (1, 2), "{name}");
        assert!(world.parked().is_empty(), "{name}");
        let has = |result| world.has_result(result);
        assert!(has("success") && !has("conflict") && !has("transient"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn repeats_come_at_once_and_then_after_pauses_that_grow() {
    let world = World::start(|turn| turn.create_missing().boxed()).await;
    world.sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(4).disconnect());
    world.create_set("a", 1);
    tokio::time::sleep(seconds(30)).await;
    let ended = Duration::from_millis(500);
    for (at, expected) in
        world.request_times("POST").into_iter().zip([Duration::ZERO, Duration::ZERO, millis(100), ended])
    {
        assert!(at >= expected && at < expected + millis(10), "{at:?}");
    }
    assert_eq!((world.request_times("POST").len(), world.parked().len()), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn connections_that_break_slowly_do_not_prolong_a_write() {
    let world = World::start(|turn| turn.create_missing().boxed()).await;
    let slow = Fault::on(Verb::Create).resource(PARTS).times(4).delay(seconds(20));
    world.sandbox.faults().inject(slow.disconnect());
    world.create_set("a", 1);
    tokio::time::sleep(seconds(53)).await;
    // The second broke when the time of the first, 34 s, was over.
    assert_eq!((world.request_times("POST").len(), world.parked().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_is_refused_because_of_the_attempt_before_is_looked_up_at_once() {
    for kind in [Change::Put, Change::Patch, Change::Delete] {
        let (world, answers) = changing(kind).await;
        world.sandbox.faults().inject(Fault::on_writes().resource(PARTS).times(1).lose_answer());
        world.sandbox.create(&PARTS, part("p", "a")).unwrap();
        assert!(world.visited(2).await[1] < millis(50), "{kind:?}");
        settle().await;
        assert!(world.parked().is_empty(), "{kind:?}");
        let answers = answers.lock();
        match kind {
            Change::Put => assert!(answers[0].as_ref().is_err_and(ApiError::is_conflict)),
            Change::Delete => assert_eq!(*answers[0].as_ref().unwrap(), Some(Deleted::Gone)),
            Change::Patch | Change::PatchByOperations => assert!(answers[0].is_ok()),
        }
        assert_eq!(world.live_checks().len(), usize::from(kind == Change::Put), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_repeat_was_refused_waits_for_its_watch_and_no_longer() {
    for kind in [Change::Put, Change::Patch, Change::Delete] {
        let (world, _) = changing(kind).await;
        world.sandbox.faults().inject(Fault::on_writes().resource(PARTS).times(1).lose_answer());
        world.sandbox.faults().delay_events(&PARTS, seconds(5));
        world.sandbox.create(&PARTS, part("p", "a")).unwrap();
        world.visited(1).await;
        world.add("a");
        assert_eq!(world.visited(2).await[1].as_secs(), 5, "{kind:?}");
        settle().await;
        assert!(world.parked().is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_repeat_of_a_creation_is_known_at_once_where_the_watch_is_down() {
    let world = World::start(|turn| turn.create_missing().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(1).lose_answer());
    world.create_set("a", 1);
    world.visited(1).await;
    settle().await;
    assert_eq!(
        (world.live_checks().len(), world.parked().len()),
        (1, 1),
        "it is there, and the cache does not show it"
    );
    tokio::time::sleep(seconds(5)).await;
    world.sandbox.faults().release_watches(&PARTS);
    settle().await;
    assert_eq!((world.live_checks().len(), world.parked().len(), world.parts().len()), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_look_whose_connection_breaks_is_made_again_at_once() {
    let world = World::start(|turn| turn.create_missing().boxed()).await;
    world.sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(1).lose_answer());
    world.sandbox.faults().inject(Fault::on(Verb::List).resource(PARTS).times(1).disconnect());
    world.create_set("a", 1);
    assert!(world.visited(2).await[1] < millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_is_refused_for_another_reason_says_nothing_of_the_attempt_before() {
    for (code, reason) in [(429, "TooManyRequests"), (403, "Forbidden"), (503, "ServiceUnavailable")] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        world.sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(1).disconnect());
        let refusal = Fault::on(Verb::Create).resource(PARTS).skip(1).times(1).fail(Status::new(code, reason, "no"));
        world.sandbox.faults().inject(refusal);
        world.create_set("a", 1);
        assert_eq!(world.visited(2).await[1].as_secs(), 34, "{code}");
        settle().await;
        assert_eq!((world.parts().len(), world.request_times("POST").len()), (1, 3), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_do_more_when_sent_twice_is_sent_once() {
    let (world, answers) = changing(Change::PatchByOperations).await;
    world.sandbox.faults().inject(Fault::on_writes().resource(PARTS).times(1).disconnect());
    world.sandbox.create(&PARTS, part("p", "a")).unwrap();
    world.visited(1).await;
    world.add("a");
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(34)]);
    assert!(answers.lock()[0].as_ref().is_err_and(ApiError::response_lost));
    assert_eq!(world.request_times("PATCH").len(), 1);
}

/// A reconcile that gives its creation up after `patience`.
async fn giving_up(patience: Duration, faults: impl IntoIterator<Item = Fault>) -> World {
    let world = World::start(move |turn| {
        async move {
            if turn.number == 0 {
                let given_up = tokio::time::timeout(patience, turn.create_part()).await.is_err();
                assert!(given_up);
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    for fault in faults {
        world.sandbox.faults().inject(fault);
    }
    world.create_set("a", 1);
    world.visited(1).await;
    world.touch("a");
    world
}

#[tokio::test(start_paused = true)]
async fn a_write_given_up_between_two_attempts_counts_from_the_last() {
    let world = giving_up(millis(300), [Fault::on(Verb::Create).resource(PARTS).disconnect()]).await;
    let waited = world.visited(2).await[1];
    assert!(waited >= millis(34_100) && waited < millis(34_150), "{waited:?}");
    assert_eq!(world.request_times("POST").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_write_given_up_during_a_repeat_counts_as_lost() {
    let creations = || Fault::on(Verb::Create).resource(PARTS);
    let world = giving_up(seconds(1), [creations().times(1).disconnect(), creations().skip(1).stall()]).await;
    assert_eq!(world.visited(2).await[1], seconds(61), "it is not known when the repeat began");
    assert_eq!(world.request_times("POST").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_lands_after_its_repeat_changes_nothing() {
    let sandbox = sandbox();
    let options = Options { client: Some(late(&sandbox, seconds(3))), ..Options::default() };
    let world = World::with(options, &sandbox, |turn| turn.create_missing().boxed()).await;
    world.create_set("a", 1);
    assert!(world.visited(2).await[1] < millis(50));
    tokio::time::sleep(seconds(100)).await;
    assert_eq!((world.parts().len(), world.request_times("POST").len()), (1, 2));
}

/// A client whose first creation breaks the connection, and reaches the server `delay` later all the same.
fn late(sandbox: &Sandbox, delay: Duration) -> kube::Client {
    use tower::ServiceExt as _;

    let service = sandbox.service();
    let under_way = Arc::new(Mutex::new(JoinSet::new()));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (service, under_way) = (service.clone(), Arc::clone(&under_way));
        async move {
            let is_first = *request.method() == http::Method::POST && under_way.lock().is_empty();
            if !is_first {
                return service.oneshot(request).await;
            }
            under_way.lock().spawn(async move {
                tokio::time::sleep(delay).await;
                drop(service.oneshot(request).await);
            });
            Err(ConnectionLost)
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_as_many_parts_are_made_as_wanted() {
    const WANTED: usize = 5;
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut random = |below: u64| rng.u64(..below);
        let sandbox = sandbox();
        let world = World::with(Options::default(), &sandbox, |turn| turn.create_missing().boxed()).await;
        for _ in 0..=random(6) {
            let skip = usize::try_from(random(8)).unwrap();
            let times = usize::try_from(1 + random(6)).unwrap();
            let fault =
                Fault::on_any().resource(PARTS).when(|target| target.verb != Verb::Watch).skip(skip).times(times);
            let fault = fault.delay(millis(random(2) * random(40_000)));
            sandbox.faults().inject(match random(5) {
                0 | 1 => fault.lose_answer(),
                2 => fault.disconnect(),
                3 => fault.stall(),
                _ => fault.fail(Status::new(if random(2) == 0 { 500 } else { 429 }, "", "no")),
            });
        }
        sandbox.faults().delay_events(&PARTS, millis(random(2) * random(5_000)));
        world.create_set("a", WANTED);
        for _ in 0..40 {
            tokio::time::sleep(millis(random(5_000))).await;
            if random(3) == 0 {
                sandbox.faults().cut_watches(&PARTS, Cut::Broken);
            }
            world.touch("a");
        }
        tokio::time::sleep(seconds(900)).await;
        // None is ever deleted, so what is there in the end is what was ever made.
        assert_eq!((world.parts().len(), world.parked().len()), (WANTED, 0), "seed {seed}");
    }
}
