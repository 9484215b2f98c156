//! Outages of the API server, and of etcd behind it: who waits, who goes on when, and what is sent meanwhile.

use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::PartialObjectMeta;
use kcm_framework::ReconcileError;
use kcm_framework::client::ListQuery;
use kcm_framework::events::{EventType, ObjectReference};
use kcm_sandbox_apiserver::{EVENTS, Fault, Resource, Sandbox, Status, Verb};
use tokio::time::Instant;

use crate::guarantees::support::{
    CONTROLLER, Options, PARTS, SETS, Turn, Warnings, World, key, sandbox, seconds, set, settle,
};

/// How an outage begins.
#[derive(Debug, Clone, Copy)]
enum Stopped {
    ApiServer,
    Etcd,
}

impl Stopped {
    fn begin(self, sandbox: &Sandbox) {
        match self {
            Self::ApiServer => sandbox.faults().stop_api_server(),
            Self::Etcd => sandbox.faults().stop_etcd(),
        }
    }
}

/// Creates the parts that are missing.
async fn create_missing(turn: Turn<'_>) -> Result<(), ReconcileError> {
    for _ in turn.parts().len()..turn.wanted() {
        turn.create_part().await?;
    }
    Ok(())
}

async fn world() -> World {
    let world = World::with(Options::default(), &sandbox(), |turn| create_missing(turn).boxed()).await;
    settle().await;
    world
}

fn lists_of(sandbox: &Sandbox, resource: &Resource) -> usize {
    let requests = sandbox.requests();
    let lists = requests.iter().filter(|request| {
        let is_list = request.target.as_ref().is_some_and(|target| {
            target.resource == *resource
                && (target.verb == Verb::List || request.query.contains("sendInitialEvents=true"))
                // The revision of the storage is read from a list of one object.
                && request.query != "limit=1"
        });
        is_list && request.status == Some(200)
    });
    lists.count()
}

fn probes(sandbox: &Sandbox) -> usize {
    sandbox.requests().iter().filter(|request| request.path == "/readyz").count()
}

/// Waits until the API server has as many parts, and returns how long that took.
async fn parts_after(world: &World, count: usize) -> Duration {
    let begun = Instant::now();
    while world.parts().len() < count {
        assert!(begun.elapsed() < seconds(120), "there are only {} of {count} parts", world.parts().len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

/// Lets an outage pass in which every set is touched, so that every key has something to do.
async fn pass(world: &World, stopped: Stopped, outage: Duration) {
    stopped.begin(&world.sandbox);
    for name in ["a", "b", "c"] {
        world.add(name);
    }
    tokio::time::sleep(outage).await;
    world.sandbox.faults().end_outage();
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_of_whatever_length_keys_act_within_three_seconds() {
    for stopped in [Stopped::ApiServer, Stopped::Etcd] {
        for outage in [1, 60, 3600].map(seconds) {
            let world = world().await;
            for name in ["a", "b", "c"] {
                world.create_set(name, 1);
            }
            parts_after(&world, 3).await;
            for name in ["a", "b", "c"] {
                let more = serde_json::json!({"metadata": {"labels": {"count": "2"}}});
                world.sandbox.patch(&SETS, &key(name), &more).unwrap();
            }
            pass(&world, stopped, outage).await;
            let took = parts_after(&world, 6).await;
            assert!(took <= seconds(3), "{took:?} after an outage of {outage:?} ({stopped:?})");
            tokio::time::sleep(seconds(60)).await;
            assert_eq!(world.parts().len(), 6, "nothing is created twice");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_of_whatever_length_caches_are_live_within_two_seconds() {
    for (outage, is_compacted) in [(1, false), (60, false), (3600, false), (3600, true)] {
        let world = world().await;
        let lists = [SETS, PARTS].map(|resource| lists_of(&world.sandbox, &resource));
        world.sandbox.faults().stop_api_server();
        tokio::time::sleep(seconds(outage)).await;
        world.sandbox.create(&SETS, set("late", 0)).unwrap();
        if is_compacted {
            world.sandbox.compact();
        }
        world.sandbox.faults().end_outage();
        let visits = tokio::time::timeout(seconds(2), world.visited(1)).await;
        assert!(visits.is_ok(), "the change during an outage of {outage} s was not seen within two seconds");
        tokio::time::sleep(seconds(60)).await;
        for (resource, before) in [SETS, PARTS].into_iter().zip(lists) {
            let more = lists_of(&world.sandbox, &resource) - before;
            assert!(more <= usize::from(is_compacted), "{more} more lists of {resource}");
        }
    }
}

/// Two parts of the set `a`, the version of the storage then, and later writes of which a restore knows nothing.
async fn world_before_a_restore() -> (World, u64) {
    let world = world().await;
    world.create_set("a", 2);
    parts_after(&world, 2).await;
    settle().await;
    let backup = world.sandbox.version();
    for number in 0..20 {
        world.sandbox.create(&SETS, set(&format!("later-{number}"), 0)).unwrap();
    }
    settle().await;
    (world, backup)
}

#[tokio::test(start_paused = true)]
async fn after_a_restore_of_etcd_keys_act_within_three_seconds() {
    let (world, backup) = world_before_a_restore().await;
    world.sandbox.faults().stop_api_server();
    tokio::time::sleep(seconds(30)).await;
    world.sandbox.restore(backup).unwrap();
    world.sandbox.faults().end_outage();
    tokio::time::sleep(seconds(1)).await;
    world.scale_set("a", 3);
    assert!(world.sandbox.version() < backup + 20, "the caches are ahead of it");
    let took = parts_after(&world, 3).await;
    assert!(took <= seconds(3), "{took:?}");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(world.parts().len(), 3, "nothing is created twice");
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_version_the_cache_has_passed_shows_that_etcd_has_gone_back() {
    let (world, backup) = world_before_a_restore().await;
    let invalid = Status::new(422, "Invalid", "refused for now");
    let refused = world.sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).fail(invalid));
    world.scale_set("a", 3);
    // The cache of parts is ahead of the backup as well.
    world.sandbox.bookmark(&PARTS);
    settle().await;
    // The restart is too short for an outage, and all watches stay open and silent.
    for resource in [SETS, PARTS] {
        world.sandbox.faults().silence_watches(&resource);
    }
    world.sandbox.restore(backup).unwrap();
    let lists = || {
        let requests = world.sandbox.requests();
        let lists = requests.iter().filter(|request| request.query.contains("sendInitialEvents=true"));
        lists.count()
    };
    let before = lists();
    refused.remove();
    parts_after(&world, 3).await;
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(lists() - before, 2, "the caches of sets and of parts are listed again");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(world.parts().len(), 3, "nothing is created twice");
}

#[tokio::test(start_paused = true)]
async fn the_handle_names_the_connection_that_cannot_be_used_why_and_since_when() {
    let world = world().await;
    let handle = world.manager.handle.clone();
    assert_eq!(handle.unusable_connection(), None);
    world.sandbox.faults().stop_api_server();
    tokio::time::sleep(seconds(20)).await;
    let unusable = handle.unusable_connection().expect("all watches broke");
    assert_eq!(unusable.users, "the manager");
    assert!(!unusable.cause.is_empty());
    assert!((seconds(18)..=seconds(20)).contains(&unusable.for_time), "{:?}", unusable.for_time);
    world.sandbox.faults().end_outage();
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(handle.unusable_connection(), None);
}

#[tokio::test(start_paused = true)]
async fn the_third_outage_in_five_minutes_is_over_as_soon_as_the_first() {
    let world = world().await;
    for count in 1..=3 {
        let name = format!("set-{count}");
        world.sandbox.faults().stop_api_server();
        world.sandbox.create(&SETS, set(&name, 1)).unwrap();
        tokio::time::sleep(seconds(1)).await;
        world.sandbox.faults().end_outage();
        let took = parts_after(&world, count).await;
        assert!(took <= seconds(3), "{took:?} after outage {count}");
        tokio::time::sleep(seconds(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn during_an_outage_nothing_is_sent_but_probes_two_a_second_at_most() {
    for stopped in [Stopped::ApiServer, Stopped::Etcd] {
        let world = world().await;
        world.create_set("a", 1);
        parts_after(&world, 1).await;
        let more = serde_json::json!({"metadata": {"labels": {"count": "9"}}});
        stopped.begin(&world.sandbox);
        world.sandbox.patch(&SETS, &key("a"), &more).unwrap();
        world.add("a");
        tokio::time::sleep(seconds(2)).await;
        world.sandbox.clear_requests();
        tokio::time::sleep(seconds(600)).await;
        let probes = probes(&world.sandbox);
        assert!((600..=1201).contains(&probes), "{probes} in 600 s ({stopped:?})");
        let others = world.sandbox.requests().len() - probes;
        assert_eq!(others, 0, "{stopped:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_with_one_refresh() {
    for stopped in [Stopped::ApiServer, Stopped::Etcd] {
        for outage in [1, 60, 3600].map(seconds) {
            let world = world().await;
            world.add("a");
            stopped.begin(&world.sandbox);
            world.create_set("b", 1);
            tokio::time::sleep(outage).await;
            world.sandbox.clear_requests();
            world.sandbox.faults().end_outage();
            // Shorter than the period of discovery.
            tokio::time::sleep(seconds(20)).await;
            let roots = |root: &str| world.sandbox.requests().iter().filter(|request| request.path == root).count();
            assert_eq!((roots("/api"), roots("/apis")), (1, 1), "{stopped:?}, {outage:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_keeps_the_failures_that_it_had_before_an_outage() {
    for stopped in [Stopped::ApiServer, Stopped::Etcd] {
        let world = world().await;
        let refused = Status::new(500, "InternalError", "out of luck");
        let fault = world.sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(7).fail(refused));
        world.create_set("a", 1);
        while fault.hits() < 7 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The key waits for 320 ms.
        let begun = Instant::now();
        stopped.begin(&world.sandbox);
        tokio::time::sleep(seconds(600)).await;
        let visits = world.visits().len();
        assert_eq!(world.failures("a"), 7, "{stopped:?}");
        world.sandbox.faults().clear();
        parts_after(&world, 1).await;
        assert!(begun.elapsed() <= seconds(603));
        assert!(world.visits().len() <= visits + 2, "one reconcile at the end of the outage, and one for its event");
        assert_eq!(world.failures("a"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_an_outage_interrupted_is_known_at_its_end() {
    for outage in [1, 20, 60, 3600].map(seconds) {
        let world = world().await;
        let interrupted = Fault::on(Verb::Create).resource(PARTS).times(1).delay(seconds(1)).lose_answer();
        world.sandbox.faults().inject(interrupted);
        world.create_set("a", 2);
        tokio::time::sleep(Duration::from_millis(999)).await;
        world.sandbox.faults().stop_api_server();
        tokio::time::sleep(outage).await;
        world.sandbox.faults().end_outage();
        let took = parts_after(&world, 2).await;
        assert!(took <= seconds(3), "{took:?} after an outage of {outage:?}");
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(world.parts().len(), 2, "the interrupted creation took effect, and is not made again");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_recorded_in_an_outage_is_sent_once_it_is_over() {
    for stopped in [Stopped::ApiServer, Stopped::Etcd] {
        for (outage, within) in [(2, 11), (60, 3), (3600, 3)] {
            let world = World::with(Options::default(), &sandbox(), |turn| {
                async move {
                    tokio::time::sleep(seconds(2)).await;
                    let set: PartialObjectMeta = serde_json::from_value(set(turn.key.name(), 0)).unwrap();
                    let regarding = ObjectReference::of(&SETS, &set.metadata);
                    turn.session.recorder().event(&regarding, EventType::Normal, "Seen", "the set was seen");
                    Ok(())
                }
                .boxed()
            })
            .await;
            world.add("a");
            tokio::time::sleep(seconds(1)).await;
            stopped.begin(&world.sandbox);
            tokio::time::sleep(seconds(outage)).await;
            assert!(world.sandbox.list(&EVENTS, None).is_empty());
            world.sandbox.faults().end_outage();
            tokio::time::sleep(seconds(within)).await;
            let events = world.sandbox.list(&EVENTS, None);
            assert_eq!(events.len(), 1, "{stopped:?}, {outage} s");
            assert!(events[0].get("count").is_none_or(|count| *count == 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_alone_is_unavailable_is_no_outage() {
    // Every set reads the parts live, and set `b` nothing.
    let world = World::with(Options::default(), &sandbox(), |turn| {
        async move {
            if turn.key.name() == "a" {
                turn.session.api().list(&PARTS, None, &ListQuery::default()).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    let out = Status::new(503, "ServiceUnavailable", "service unavailable");
    world.sandbox.faults().inject(Fault::on(Verb::List).resource(PARTS).fail(out));
    let warnings = Warnings::capture();
    world.create_set("a", 0);
    world.create_set("b", 0);
    tokio::time::sleep(seconds(60)).await;
    assert!(world.failures("a") > 5, "a key that fails alone backs off: {}", world.failures("a"));
    let failures = world.failures("a");
    assert_eq!(warnings.count("Reconcile failed; requeued with back-off"), failures as usize, "each is logged");
    let labels = format!("controller=\"{CONTROLLER}\",name=\"sets\",result=\"unavailable\"");
    let counted = format!("controller_reconciles_total{{{labels}}} {failures}");
    assert!(world.manager.has_metric(&counted), "{counted}: {}", world.manager.metrics.encode());
    assert!(!world.has_result("unreachable"), "there was no outage");
    let visits = world.visits().len();
    world.touch("b");
    settle().await;
    assert!(world.visits().len() > visits, "others go on at once");
    assert!(world.manager.has_metric("api_server_outages_total 0"));
    assert!(world.manager.has_metric("api_server_reachable 1"));
}

#[tokio::test(start_paused = true)]
async fn metrics_show_an_outage() {
    let world = world().await;
    world.sandbox.faults().stop_api_server();
    tokio::time::sleep(seconds(10)).await;
    assert!(world.manager.has_metric("api_server_reachable 0"));
    assert!(world.manager.has_metric("api_server_outages_total 1"));
    world.sandbox.faults().end_outage();
    tokio::time::sleep(seconds(3)).await;
    assert!(world.manager.has_metric("api_server_reachable 1"));
}
