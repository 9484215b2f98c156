//! Nothing happens twice because an answer was lost.

use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::Selector;
use kcm_framework::ReconcileError;
use kcm_framework::client::{Patch, Payload};
use kcm_informers::ListOptions;
use kcm_sandbox_apiserver::{Fault, Status, Verb};
use serde_json::{Value, json};

use crate::guarantees::support::{Options, PARTS, Turn, World, key, part, sandbox, seconds, settle};

/// A write is given 30 s by the API server and 4 s for the way.
const DEADLINE: Duration = Duration::from_secs(34);

/// Number of attempts of a write whose connection breaks each time, and the deadline of the last attempt.
const ATTEMPTS: usize = 4;
const LAST_DEADLINE: Duration = DEADLINE.saturating_add(Duration::from_millis(500));

async fn create_missing(turn: Turn<'_>) -> Result<(), ReconcileError> {
    for _ in turn.parts().len()..turn.wanted() {
        turn.create_part().await?;
    }
    Ok(())
}

fn creations() -> Fault {
    Fault::on(Verb::Create).resource(PARTS).times(ATTEMPTS)
}

#[tokio::test(start_paused = true)]
async fn of_several_namespaces_a_lost_answer_is_looked_up_in_its_own() {
    let parts = ["other", "default"].map(ListOptions::namespace).to_vec();
    let world =
        World::with(Options { parts, ..Options::default() }, &sandbox(), |turn| turn.create_part_at_first().boxed())
            .await;
    world.sandbox.faults().inject(creations().lose_answer());
    world.create_set("a", 1);
    tokio::time::sleep(seconds(20)).await;
    world.touch("a");
    let visits = world.visited(2).await;
    assert_eq!(visits[1], LAST_DEADLINE);
    assert_eq!(world.live_checks().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_is_not_made_again() {
    let failure = Status::new(500, "InternalError", "etcd");
    for (name, fault, end) in [
        ("took effect", creations().lose_answer(), LAST_DEADLINE),
        ("did not reach the server", creations().disconnect(), LAST_DEADLINE),
        ("failed in the server, who knows where", creations().times(1).fail(failure), DEADLINE),
    ] {
        let world = World::start(|turn| create_missing(turn).boxed()).await;
        world.sandbox.faults().inject(fault);
        world.create_set("a", 1);
        tokio::time::sleep(seconds(20)).await;
        for _ in 0..13 {
            world.touch("a");
            tokio::time::sleep(seconds(1)).await;
        }
        assert_eq!(world.visits().len(), 1, "{name}: held back whatever adds it");
        let visits = world.visited(2).await;
        assert_eq!(visits[1], end, "{name}");
        tokio::time::sleep(seconds(100)).await;
        assert_eq!(world.parts().len(), 1, "{name}");
        assert_eq!(world.parked().len(), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_took_effect_is_waited_for_where_the_cache_is_behind() {
    let world = World::start(|turn| create_missing(turn).boxed()).await;
    world.sandbox.faults().inject(creations().lose_answer());
    world.sandbox.faults().delay_events(&PARTS, seconds(50));
    world.create_set("a", 1);
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(50)]);
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(world.parts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_does_not_wait_for_what_its_cache_has_observed_before_the_look() {
    let list_options =
        ListOptions { label_selector: Some(Selector::of_labels([("set", "other")])), ..ListOptions::default() };
    let options = Options { parts: vec![list_options], ..Options::default() };
    let world = World::with(options, &sandbox(), |turn| {
        async move {
            if turn.number == 0 && turn.key.name() == "a" {
                turn.create_part().await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().inject(creations().lose_answer());
    world.create_set("a", 1);
    settle().await;
    // The cache never holds the part that was created, and moves past it.
    world.sandbox.create(&PARTS, part("p", "other")).unwrap();
    tokio::time::sleep(seconds(40)).await;
    let visits: Vec<_> = world.visits().into_iter().filter(|visit| visit.name == "a").collect();
    assert_eq!(visits[1].began - visits[0].began, LAST_DEADLINE);
    assert!(world.parked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_from_the_request_and_not_from_the_end_of_its_reconcile() {
    let world = World::start(|turn| {
        async move {
            if turn.parts().len() < turn.wanted() {
                let lost = turn.create_part().await;
                tokio::time::sleep(seconds(10)).await;
                lost?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().inject(creations().lose_answer());
    world.create_set("a", 1);
    assert_eq!(world.visited(2).await, [Duration::ZERO, LAST_DEADLINE]);
}

#[tokio::test(start_paused = true)]
async fn a_look_before_the_deadline_says_nothing_of_a_lost_answer() {
    let world = World::start(|turn| {
        async move {
            if turn.number == 0 {
                for changed in ["once", "twice"] {
                    let patch = json!({"metadata": {"labels": {"changed": changed}}});
                    turn.session.of(&PARTS).patch(&key("p"), Patch::Merge(Payload::json(&patch))).await?;
                }
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.create(&PARTS, part("p", "a")).unwrap();
    world.sandbox.faults().delay_events(&PARTS, seconds(32));
    world.sandbox.faults().inject(Fault::on(Verb::Patch).resource(PARTS).skip(1).times(ATTEMPTS).disconnect());
    world.add("a");
    // The first change is looked up after 30 s and comes back after 32 s; the second one might still be made.
    assert_eq!(world.visited(2).await, [Duration::ZERO, LAST_DEADLINE]);
    assert_eq!(world.live_checks().len(), 2);
}

/// A write of a reconcile to part `p` of set `a`.
#[derive(Clone, Copy, Debug)]
enum Change {
    Put,
    Patch,
    Delete,
}

async fn change(turn: &Turn<'_>, change: Change) -> Result<(), ReconcileError> {
    let Some(p) = turn.parts().into_iter().next() else { return Ok(()) };
    let labels = json!({"set": "a", "changed": "yes"});
    match change {
        Change::Put => {
            let mut object = part("p", "a");
            object["metadata"]["resourceVersion"] = Value::String(p.metadata.resource_version.to_string());
            object["metadata"]["labels"] = labels;
            turn.session.of(&PARTS).update(&key("p"), Payload::json(&object)).await?;
        }
        Change::Patch => {
            let patch = Patch::Merge(Payload::json(&json!({"metadata": {"labels": labels}})));
            turn.session.of(&PARTS).patch(&key("p"), patch).await?;
        }
        Change::Delete => {
            turn.delete_part("p", &p.metadata.uid).await?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_writes_whose_answer_is_lost_hold_their_key_back_as_well() {
    for kind in [Change::Put, Change::Patch, Change::Delete] {
        for took_effect in [true, false] {
            let world = World::start(move |turn| {
                async move {
                    if turn.number == 0 {
                        change(&turn, kind).await?;
                    }
                    Ok(())
                }
                .boxed()
            })
            .await;
            let fault = Fault::on_writes().resource(PARTS).times(ATTEMPTS);
            world.sandbox.faults().inject(if took_effect { fault.lose_answer() } else { fault.disconnect() });
            world.sandbox.create(&PARTS, part("p", "a")).unwrap();
            assert_eq!(world.visited(2).await, [Duration::ZERO, LAST_DEADLINE], "{kind:?}, took effect: {took_effect}");
            settle().await;
            assert!(world.parked().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_given_up_by_its_reconcile_counts_as_lost() {
    let world = World::start(|turn| {
        async move {
            if turn.parts().len() < turn.wanted() {
                let given_up = tokio::time::timeout(seconds(1), turn.create_part()).await.is_err();
                assert!(given_up || turn.number > 0);
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().inject(creations().times(1).stall());
    world.create_set("a", 1);
    tokio::time::sleep(seconds(2)).await;
    world.touch("a");
    // It is not known when the request began: it is given the time of two.
    assert_eq!(world.visited(2).await[1], seconds(61));
    settle().await;
    assert_eq!(world.parts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_live_look_that_fails_is_repeated() {
    let world = World::start(|turn| create_missing(turn).boxed()).await;
    world.sandbox.faults().inject(creations().lose_answer());
    let failing = Fault::on(Verb::List).resource(PARTS).times(2);
    let failing = world.sandbox.faults().inject(failing.fail(Status::new(503, "ServiceUnavailable", "no")));
    world.create_set("a", 1);
    assert_eq!(world.visited(2).await, [Duration::ZERO, LAST_DEADLINE + seconds(60)]);
    assert_eq!((failing.hits(), world.live_checks().len(), world.parts().len()), (2, 3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_has_not_come_back_is_looked_up_every_thirty_seconds_by_a_list_of_the_manager() {
    let world = World::start(|turn| create_missing(turn).boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.sandbox.clear_requests();
    world.create_set("a", 1);
    world.visited(1).await;
    tokio::time::sleep(seconds(70)).await;
    let looks = world.live_checks();
    let created = world.sandbox.requests().into_iter().find(|request| request.method == "POST").unwrap().at;
    let times: Vec<_> = looks.iter().map(|look| look.at).collect();
    assert_eq!(times, [created + seconds(30), created + seconds(60)]);
    for look in &looks {
        let target = look.target.as_ref().unwrap();
        let header = |name| look.headers.get(name).unwrap().to_str().unwrap();
        assert_eq!((target.verb, &target.resource), (Verb::List, &PARTS));
        assert_eq!(look.query, format!("fieldSelector=metadata.name%3D{}", world.parts()[0]));
        assert!(header("user-agent").starts_with("kube-controller-manager/"), "{}", header("user-agent"));
        assert!(header("user-agent").ends_with("/kube-controller-manager"), "{}", header("user-agent"));
        assert!(header("accept").contains("as=PartialObjectMetadataList"), "{}", header("accept"));
    }
    let gets = world.sandbox.requests().into_iter().filter_map(|r| r.target).filter(|t| t.verb == Verb::Get).count();
    assert_eq!(gets, 0, "not every role may get");
    assert_eq!((world.parked(), world.visits().len()), (vec!["a".to_owned()], 1), "it is there: the cache will say so");
}
