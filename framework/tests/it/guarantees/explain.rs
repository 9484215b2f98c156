//! Why a key was reconciled, what was decided, and what it waits for.

use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::explain::{KeyExplanation, KeyState};
use kcm_framework::{Class, ReconcileError};

use crate::guarantees::support::{CONTROLLER, PARTS, World, key, seconds, settle};

fn explained(world: &World, name: &str) -> KeyExplanation {
    let mut all = world.manager.handle.explain(CONTROLLER, &key(name)).unwrap();
    assert_eq!(all.len(), 1, "the controller has one loop");
    all.remove(0)
}

/// The causes of the newest reconcile: reason, resource, object and count.
fn causes(explained: &KeyExplanation) -> Vec<(String, Option<String>, Option<String>, u32)> {
    let newest = &explained.reconciles[0];
    let cause = |trigger: &kcm_framework::explain::TriggerExplanation| {
        (trigger.reason.clone(), trigger.resource.clone(), trigger.object.clone(), trigger.count)
    };
    newest.triggers.iter().map(cause).collect()
}

fn reasons(explained: &KeyExplanation) -> Vec<&str> {
    explained.waits_for.iter().map(|wait| wait.reason.as_str()).collect()
}

fn cause(
    reason: &str,
    resource: &str,
    object: Option<&str>,
    count: u32,
) -> (String, Option<String>, Option<String>, u32) {
    (reason.to_owned(), Some(resource.to_owned()), object.map(str::to_owned), count)
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_is_explained_by_its_causes_its_words_and_its_writes() {
    let world = World::start(|turn| {
        async move {
            let (wanted, parts) = (turn.wanted(), turn.parts().len());
            turn.session.explain(|| format!("{wanted} are wanted and {parts} exist"));
            for _ in parts..wanted {
                turn.create_part().await?;
            }
            turn.session.requeue_after(seconds(60));
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 2);
    world.visited(2).await;
    settle().await;

    let explained = explained(&world, "a");
    assert_eq!((explained.controller.as_str(), explained.name.as_str()), (CONTROLLER, "sets"));
    assert_eq!((explained.key.as_str(), explained.resource.as_deref()), ("default/a", Some("sets.example.com")));
    assert_eq!((explained.exists, explained.state, explained.failures), (Some(true), KeyState::Idle, 0));
    assert_eq!(reasons(&explained), ["Requeue"]);
    let [second, first] = &explained.reconciles[..] else { panic!("{:?}", explained.reconciles) };
    assert_eq!(first.triggers[0].reason, "Added");
    assert_eq!(first.decisions, ["2 are wanted and 0 exist"]);
    let [write] = &first.writes[..] else { panic!("{:?}", first.writes) };
    assert_eq!((write.verb.as_str(), write.resource.as_str()), ("create", "parts.example.com"));
    assert_eq!((write.count, write.failed), (2, 0));
    assert!(first.resource_version.is_some() && first.outcome == "Succeeded");
    assert_eq!(first.requeue_after_seconds, Some(60.0));
    assert_eq!((second.triggers[0].reason.as_str(), second.triggers[0].count), ("Added", 2));
    assert_eq!((&*second.decisions, second.writes.len()), (&["2 are wanted and 2 exist".to_owned()][..], 0));

    tokio::time::sleep(seconds(61)).await;
    let explained = self::explained(&world, "a");
    assert_eq!(explained.reconciles[0].triggers[0].reason, "Requeue");
    assert!(explained.to_string().contains("because  the earlier reconcile asked for it"), "{explained}");
}

#[tokio::test(start_paused = true)]
async fn the_causes_of_a_key_survive_the_merging_of_keys() {
    let world = World::start(|_| {
        async {
            // Long enough for events to come meanwhile.
            tokio::time::sleep(seconds(10)).await;
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 0);
    settle().await;
    assert_eq!(explained(&world, "a").state, KeyState::Processing);
    for _ in 0..3 {
        world.touch("a");
        settle().await;
    }
    world.sandbox.create(&PARTS, crate::guarantees::support::part("p", "a")).unwrap();
    settle().await;
    let waiting = explained(&world, "a");
    assert_eq!(waiting.pending_triggers.len(), 2);
    tokio::time::sleep(seconds(15)).await;
    settle().await;
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(
        causes(&explained(&world, "a")),
        [cause("Updated", "sets.example.com", None, 3), cause("Added", "parts.example.com", Some("default/p"), 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_its_writes_says_for_which() {
    let world = World::start(|turn| turn.create_part_at_first().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    settle().await;
    let explained = explained(&world, "a");
    assert_eq!((explained.state, reasons(&explained)), (KeyState::WaitingForWrites, vec!["PendingWrite", "LiveCheck"]));
    assert!(explained.waits_for[0].message.contains("the cache of parts.example.com to reach version"));
    assert_eq!(explained.waits_for[1].in_seconds, Some(30.0 - 0.001));
    let [queue] = &world.manager.handle.queues()[..] else { panic!("there is one queue") };
    assert_eq!((queue.name.as_str(), queue.pending_writes, queue.waiting_for_writes_count), ("sets", 1, 1));
    assert_eq!(queue.waiting_for_writes[0].key, "default/a");
    let [counts] = &world.manager.handle.queue_counts()[..] else { panic!("there is one queue") };
    assert_eq!((counts.name.as_str(), counts.waiting_for_writes_count), ("sets", 1));
    assert!(counts.waiting_for_writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_says_why_and_when_it_is_tried_again() {
    let world = World::start(|turn| {
        async move {
            match turn.number {
                0..3 => Err(ReconcileError::new(Class::Transient, "as the test wants it")),
                3 => panic!("as the test wants it"),
                _ => Ok(()),
            }
        }
        .boxed()
    })
    .await;
    world.create_set("a", 0);
    world.visited(3).await;
    let failing = explained(&world, "a");
    assert_eq!((failing.failures, reasons(&failing)), (3, vec!["BackOff"]));
    assert_eq!(failing.waits_for[0].in_seconds, Some(0.02));
    let newest = &failing.reconciles[0];
    assert_eq!((newest.outcome.as_str(), newest.class.as_deref()), ("Failed", Some("transient")));
    assert_eq!((newest.error.as_deref(), newest.attempt), (Some("as the test wants it"), 3));
    assert_eq!(newest.triggers[0].reason, "BackOff");
    world.visited(5).await;
    settle().await;
    let explained = explained(&world, "a");
    let outcomes: Vec<_> = explained.reconciles.iter().map(|reconcile| reconcile.outcome.as_str()).collect();
    assert_eq!(outcomes, ["Succeeded", "Panicked", "Failed", "Failed", "Failed"]);
    assert_eq!(explained.failures, 0);
    let [queue] = &world.manager.handle.queues()[..] else { panic!("there is one queue") };
    assert_eq!(queue.last_error.as_ref().map(|last| last.key.as_str()), Some("default/a"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_explained_too() {
    let world = World::start(|_| async { Ok(()) }.boxed()).await;
    let unknown = explained(&world, "a");
    assert_eq!((unknown.exists, unknown.state, unknown.reconciles.len()), (Some(false), KeyState::Idle, 0));
    assert!(world.manager.handle.explain("no-controller", &key("a")).is_none());
    world.create_set("a", 0);
    settle().await;
    world.sandbox.delete(&crate::guarantees::support::SETS, &key("a")).unwrap();
    settle().await;
    let deleted = explained(&world, "a");
    assert_eq!((deleted.exists, deleted.reconciles[0].missing), (Some(false), true));
    assert_eq!(causes(&deleted), [cause("Deleted", "sets.example.com", None, 1)]);
    world.manager.stop.drain.cancel();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(world.manager.handle.explain(CONTROLLER, &key("a")).unwrap().is_empty());
}
