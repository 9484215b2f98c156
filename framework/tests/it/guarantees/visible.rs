//! Caches, fence, discovery and connection as operators see them.

use futures::FutureExt as _;
use kcm_informers::Reachability;
use kcm_sandbox_apiserver::{Cut, Fault, Status};

use crate::guarantees::support::{PARTS, SETS, World, seconds, settle};

async fn world() -> World {
    let world = World::start(|turn| turn.create_one_missing().boxed()).await;
    settle().await;
    world
}

/// The value of the series.
fn value(world: &World, series: &str) -> Option<f64> {
    let metrics = world.manager.metrics.encode();
    let mut lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
    lines.find(|(name, _)| *name == series).map(|(_, value)| value.parse().unwrap())
}

/// The status of the cache of sets, and of the cache of parts: stale or not.
fn stale(world: &World) -> [bool; 2] {
    let informers = world.manager.handle.informers();
    [SETS, PARTS].map(|resource| informers.iter().any(|one| one.resource == resource && one.is_stale()))
}

const AGE_OF_PARTS: &str = "informer_last_event_age_seconds{resource=\"parts.example.com\"}";

#[tokio::test(start_paused = true)]
async fn a_cache_is_stale_when_its_watch_is_silent_and_current_with_the_next_bookmark() {
    let world = world().await;
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(stale(&world), [false, false], "bookmarks come every minute");
    let age = value(&world, AGE_OF_PARTS).unwrap();
    assert!(age <= 61.0, "{age}");
    world.sandbox.faults().hold_watches(&PARTS);
    tokio::time::sleep(seconds(85)).await;
    assert_eq!(stale(&world), [false, false]);
    tokio::time::sleep(seconds(75)).await;
    assert_eq!(stale(&world), [false, true]);
    assert!(value(&world, AGE_OF_PARTS).unwrap() > 150.0);
    world.sandbox.faults().release_watches(&PARTS);
    tokio::time::sleep(seconds(61)).await;
    assert_eq!(stale(&world), [false, false]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_stale_when_its_watch_fails_for_minutes() {
    let world = world().await;
    let refused = Status::forbidden(&PARTS, "", "no role allows it");
    let fault = world.sandbox.faults().inject(Fault::on_any().resource(PARTS).fail(refused));
    world.sandbox.faults().cut_watches(&PARTS, Cut::Broken);
    tokio::time::sleep(seconds(160)).await;
    assert_eq!(stale(&world), [false, true]);
    let informers = world.manager.handle.informers();
    let parts = informers.iter().find(|one| one.resource == PARTS).unwrap();
    let reason = parts.reason.clone().unwrap();
    assert!(parts.synced && reason.contains("no role allows it"), "{reason}");
    fault.remove();
    tokio::time::sleep(seconds(121)).await;
    assert_eq!(stale(&world), [false, false]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_outage_makes_no_cache_stale() {
    let world = world().await;
    world.sandbox.faults().stop_api_server();
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(stale(&world), [true, true]);
    let status = world.manager.handle.connection();
    assert_eq!(status.reachability, Reachability::Unreachable);
    assert!(value(&world, "api_server_unreachable_seconds").unwrap() > 590.0, "{status:?}");
    assert!(value(&world, "manager_discovery_age_seconds").unwrap() > 590.0);
    world.sandbox.faults().end_outage();
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(stale(&world), [false, false]);
    assert_eq!(value(&world, "api_server_unreachable_seconds"), Some(0.0));
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(stale(&world), [false, false]);
}

#[tokio::test(start_paused = true)]
async fn metrics_show_the_version_of_each_cache_under_the_name_of_upstream() {
    let world = world().await;
    world.create_set("a", 1);
    settle().await;
    let labels = |resource: &str| {
        format!("name=\"kube-controller-manager\",group=\"example.com\",version=\"v1\",resource=\"{resource}\"")
    };
    let version = |resource: &str| value(&world, &format!("informer_store_resource_version{{{}}}", labels(resource)));
    let current: f64 = world.sandbox.version().to_string().parse().unwrap();
    assert_eq!(version("parts"), Some(current), "the part is the last object that was written");
    assert_eq!(version("sets"), Some(current - 1.0));
}

#[tokio::test(start_paused = true)]
async fn metrics_show_the_fence_and_the_age_of_discovery() {
    let world = world().await;
    let fence = world.manager.handle.fence();
    let shown = || (value(&world, "manager_write_fence_closed"), value(&world, "manager_write_fence_open_seconds"));
    assert_eq!(shown(), (Some(0.0), None), "without a limit");
    fence.open_until(tokio::time::Instant::now() + seconds(12));
    assert_eq!(shown(), (Some(0.0), Some(12.0)));
    tokio::time::advance(seconds(12)).await;
    assert_eq!(shown(), (Some(1.0), Some(0.0)));

    tokio::time::sleep(seconds(100)).await;
    let age = value(&world, "manager_discovery_age_seconds").unwrap();
    assert!(age <= 31.0, "{age}");
    assert_eq!(value(&world, "manager_discovery_broken_groups"), Some(0.0));
}
