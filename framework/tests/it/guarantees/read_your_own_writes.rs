//! A key is not reconciled again before every write of its last reconcile has come back through the caches.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::Selector;
use kcm_framework::client::{Patch, Payload};
use kcm_informers::ListOptions;
use kcm_sandbox_apiserver::{CONFIG_MAPS, Sandbox};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::guarantees::support::{Options, PARTS, SETS, World, key, part, sandbox, seconds, settle};

#[tokio::test(start_paused = true)]
async fn late_events_never_lead_to_more_objects_than_wanted() {
    let world = World::start(|turn| turn.create_one_missing().boxed()).await;
    world.sandbox.faults().delay_events(&PARTS, seconds(10));
    world.create_set("a", 5);
    for second in 0..60 {
        tokio::time::sleep(seconds(1)).await;
        world.touch("a");
        assert!(world.parts().len() <= 1 + second / 10, "after {second} s: {:?}", world.parts());
    }
    assert_eq!(world.parts().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_its_writes_even_though_it_is_added_again() {
    let world = World::start(|turn| turn.create_one_missing().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 2);
    world.create_set("b", 0);
    for _ in 0..20 {
        tokio::time::sleep(seconds(1)).await;
        world.touch("a");
        world.touch("b");
    }
    settle().await;
    assert_eq!(world.visits().iter().filter(|visit| visit.name == "a").count(), 1);
    assert_eq!(world.visits().iter().filter(|visit| visit.name == "b").count(), 21, "other keys do not wait");
    assert_eq!((world.parked(), world.parts().len()), (vec!["a".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn the_event_that_settles_the_last_write_wakes_the_key_at_once() {
    let world = World::start(|turn| {
        async move {
            if turn.number == 0 {
                turn.create_part().await?;
                turn.create_part().await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().delay_events(&PARTS, seconds(7));
    world.create_set("a", 2);
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(7)]);
}

#[tokio::test(start_paused = true)]
async fn adds_while_a_key_waits_are_remembered_and_merged() {
    let world = World::start(|turn| {
        async move {
            if turn.number == 0 {
                // Of another set: what wakes `a` is not what adds it.
                turn.session.of(&PARTS).create(&key("p"), Payload::json(&part("p", "other"))).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    for touched in [3, 0] {
        let name = format!("set-{touched}");
        world.sandbox.faults().hold_watches(&PARTS);
        world.create_set(&name, 1);
        settle().await;
        assert_eq!(world.parked(), [name.as_str()]);
        for _ in 0..touched {
            world.touch(&name);
            settle().await;
        }
        world.sandbox.faults().release_watches(&PARTS);
        settle().await;
        let visits = world.visits().iter().filter(|visit| visit.name == name).count();
        assert_eq!((visits, world.parked().len()), (if touched > 0 { 2 } else { 1 }, 0));
        world.sandbox.delete(&PARTS, &key("p")).unwrap();
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_holds_nothing_back() {
    let world = World::start(|turn| {
        async move {
            let patch = Patch::Merge(Payload::json(&json!({"metadata": {"labels": {"set": "other"}}})));
            turn.session.of(&PARTS).patch(&key("p"), patch).await?;
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.create(&PARTS, part("p", "other")).unwrap();
    world.visited(1).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 0);
    world.visited(2).await;
    settle().await;
    assert!(world.parked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_settled_when_the_object_is_gone() {
    check_deletion(&[], true).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_settled_when_the_object_terminates() {
    check_deletion(&["example.com/wait"], false).await;
}

async fn check_deletion(finalizers: &[&str], goes: bool) {
    let world = World::start(|turn| {
        async move {
            for part in turn.parts().iter().filter(|part| !part.metadata.is_terminating()) {
                turn.delete_part(part.metadata.key.name(), &part.metadata.uid).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    let mut doomed = part("p", "a");
    doomed["metadata"]["finalizers"] = json!(finalizers);
    world.sandbox.faults().delay_events(&PARTS, seconds(5));
    world.sandbox.create(&PARTS, doomed).unwrap();
    let visits = world.visited(2).await;
    assert_eq!(visits, [Duration::ZERO, seconds(5)], "the deletion is seen five seconds after it was made");
    settle().await;
    assert!(world.parked().is_empty());
    assert_eq!(world.parts().is_empty(), goes);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_not_settled_by_other_events() {
    let sandbox = sandbox();
    let faults = sandbox.faults();
    let world = World::with(Options::default(), &sandbox, move |turn| {
        let faults = faults.clone();
        async move {
            for part in turn.parts().iter().filter(|part| part.metadata.key.name() == "p") {
                faults.drop_events(&PARTS, 1);
                turn.delete_part("p", &part.metadata.uid).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.create(&PARTS, part("p", "a")).unwrap();
    world.visited(1).await;
    for number in 0..3 {
        world.sandbox.create(&PARTS, part(&format!("later-{number}"), "a")).unwrap();
        settle().await;
    }
    assert_eq!((world.parked(), world.visits().len()), (vec!["a".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn events_that_come_before_the_reconcile_has_ended_count() {
    let world = World::start(|turn| {
        async move {
            if turn.number == 0 {
                turn.create_part().await?;
                for part in turn.parts().iter().filter(|part| part.metadata.key.name() == "p") {
                    turn.delete_part("p", &part.metadata.uid).await?;
                }
                tokio::time::sleep(seconds(5)).await;
                assert_ne!(turn.parts()[0].metadata.key.name(), "p", "the cache has seen both");
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.create(&PARTS, part("p", "a")).unwrap();
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(5)]);
    settle().await;
    assert!(world.parked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn refused_writes_hold_nothing_back() {
    let world = World::start(|turn| {
        async move {
            if turn.number > 0 {
                return Ok(());
            }
            let absent = turn.delete_part("absent", &"u".into()).await;
            assert_eq!(absent.unwrap(), kcm_framework::client::Deleted::Gone);
            let recreated = turn.delete_part("p", &"another".into()).await;
            assert!(recreated.unwrap_err().is_conflict());
            let there = turn.session.of(&PARTS).create(&key("p"), Payload::json(&part("p", "a"))).await;
            assert!(there.unwrap_err().is_already_exists());
            let patch = Patch::Merge(Payload::json(&json!({"metadata": {"labels": {"x": "y"}}})));
            let missing = turn.session.of(&PARTS).patch(&key("absent"), patch).await;
            assert!(missing.unwrap_err().is_not_found());
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.create(&PARTS, part("p", "other")).unwrap();
    world.visited(1).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 0);
    world.visited(2).await;
    settle().await;
    assert!(world.parked().is_empty());
    assert_eq!(world.manager.metrics.encode().matches("result=\"panic\"").count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_resource_without_a_cache_holds_nothing_back() {
    let world = World::start(|turn| {
        async move {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": turn.key.name()}});
            turn.session.of(&CONFIG_MAPS).create(turn.key, Payload::json(&object)).await?;
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 0);
    world.visited(1).await;
    settle().await;
    assert!(world.parked().is_empty());
}

/// The cache of the parts with label `set=a`.
fn only_of_a() -> ListOptions {
    ListOptions { label_selector: Some(Selector::of_labels([("set", "a")])), ..ListOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn a_write_outside_the_selector_of_the_cache_holds_nothing_back() {
    let options = Options { parts: vec![only_of_a()], ..Options::default() };
    let world = World::with(options, &sandbox(), |turn| turn.create_one_missing().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    world.create_set("b", 1);
    world.visited(2).await;
    settle().await;
    assert_eq!(world.parked(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn of_several_namespaces_a_write_is_waited_for_in_its_own() {
    let parts = ["other", "default"].map(ListOptions::namespace).to_vec();
    let options = Options { parts, ..Options::default() };
    let world = World::with(options, &sandbox(), |turn| turn.create_part_at_first().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    settle().await;
    assert_eq!(world.parked(), ["a"]);
    world.sandbox.faults().release_watches(&PARTS);
    settle().await;
    assert!(world.parked().is_empty(), "the cache of the other namespace shows nothing of it");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_moves_an_object_out_of_the_selector_of_the_cache_is_waited_for() {
    let options = Options { parts: vec![only_of_a()], ..Options::default() };
    let world = World::with(options, &sandbox(), |turn| {
        async move {
            let given_away = Patch::Merge(Payload::json(&json!({ "metadata": { "labels": { "set": "b" } } })));
            for part in turn.parts().iter().take(turn.wanted()) {
                turn.session.of(&PARTS).patch(&part.metadata.key, given_away.clone()).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.create(&PARTS, part("p", "a")).unwrap();
    settle().await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    settle().await;
    assert_eq!(world.parked(), ["a"], "the cache still holds the part that was given away");
    world.sandbox.faults().release_watches(&PARTS);
    settle().await;
    assert!(world.parked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_comes_back_through_every_cache_of_its_resource() {
    let options = Options { parts: vec![only_of_a(), ListOptions::default()], ..Options::default() };
    let world = World::with(options, &sandbox(), |turn| turn.create_one_missing().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("b", 1);
    world.visited(1).await;
    settle().await;
    assert_eq!(world.parked(), ["b"], "the first cache does not hold such parts, the second one does");
}

#[tokio::test(start_paused = true)]
async fn a_recreated_object_does_not_wait_for_the_writes_of_its_predecessor() {
    let world = World::start(|turn| turn.create_one_missing().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    settle().await;
    assert_eq!(world.parked(), ["a"]);
    world.sandbox.delete(&SETS, &key("a")).unwrap();
    world.create_set("a", 1);
    settle().await;
    assert_eq!(world.parts().len(), 2, "the new set wants a part of its own");
    assert_eq!(world.parked(), ["a"], "and waits for that one");
}

#[tokio::test(start_paused = true)]
async fn an_object_recreated_while_in_hand_does_not_wait_either() {
    let finish = Arc::new(Notify::new());
    let finished = Arc::clone(&finish);
    let world = World::start(move |turn| {
        let finish = Arc::clone(&finish);
        async move {
            if turn.number == 0 {
                turn.create_part().await?;
                finish.notified().await;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    settle().await;
    world.sandbox.delete(&SETS, &key("a")).unwrap();
    world.create_set("a", 1);
    settle().await;
    finished.notify_one();
    settle().await;
    assert_eq!((world.visits().len(), world.parked().len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn an_object_recreated_before_it_is_looked_at_waits_for_what_is_written_for_it() {
    let look = Arc::new(Notify::new());
    let may_look = Arc::clone(&look);
    let world = World::start(move |turn| {
        let look = Arc::clone(&look);
        async move {
            if turn.number == 0 {
                look.notified().await;
            }
            turn.create_one_missing().await
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    settle().await;
    world.sandbox.delete(&SETS, &key("a")).unwrap();
    world.create_set("a", 1);
    settle().await;
    may_look.notify_one();
    settle().await;
    assert_eq!((world.parts().len(), world.parked().len()), (1, 1), "the part is the new set's");
}

#[tokio::test(start_paused = true)]
async fn versions_are_decimals_of_any_length_and_what_is_none_holds_nothing_back() {
    for (answered, parked) in [("123456789012345678901234567890", true), ("0x7f", false)] {
        let sandbox = sandbox();
        let options = Options { client: Some(answering(&sandbox, answered)), ..Options::default() };
        let world = World::with(options, &sandbox, |turn| turn.create_one_missing().boxed()).await;
        world.create_set("a", 1);
        tokio::time::sleep(seconds(20)).await;
        assert_eq!((world.parts().len(), world.parked().len()), (1, usize::from(parked)), "{answered}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_can_never_come_ends_with_a_live_look() {
    // As if the storage had been restored from a backup after the write.
    let sandbox = sandbox();
    let options = Options { client: Some(answering(&sandbox, "1000000")), ..Options::default() };
    let world = World::with(options, &sandbox, |turn| turn.create_one_missing().boxed()).await;
    world.create_set("a", 1);
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(30)]);
    assert_eq!(world.parts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_object_written_last_says_nothing_of_those_written_before() {
    let world = World::start(|turn| {
        async move {
            for _ in turn.parts().len()..turn.wanted() {
                turn.create_part().await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 3);
    world.visited(1).await;
    let version = |part: &Value| part["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    let last = world.sandbox.list(&PARTS, None).into_iter().max_by_key(version).unwrap();
    world.sandbox.delete(&PARTS, &key(last["metadata"]["name"].as_str().unwrap())).unwrap();
    world.touch("a");
    tokio::time::sleep(seconds(65)).await;
    assert_eq!((world.visits().len(), world.parts().len()), (1, 2), "two looks have found nothing, and the cache too");
    world.sandbox.faults().release_watches(&PARTS);
    settle().await;
    assert_eq!(world.parts().len(), 3);
}

/// A client of an API server that answers every creation with this version.
fn answering(sandbox: &Sandbox, version: &'static str) -> kube::Client {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    let service = sandbox.service();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (service, is_creation) = (service.clone(), *request.method() == http::Method::POST);
        async move {
            let (head, body) = service.oneshot(request).await?.into_parts();
            if !is_creation {
                return Ok::<_, kcm_sandbox_apiserver::ConnectionLost>(http::Response::from_parts(head, body));
            }
            let mut object: Value = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap();
            object["metadata"]["resourceVersion"] = version.into();
            let body = http_body_util::Full::new(object.to_string().into());
            let body = body.map_err(|never| match never {}).boxed_unsync();
            Ok(http::Response::from_parts(head, body))
        }
    });
    kube::Client::new(service, "default")
}
