//! Two managers on one API server, of which the second takes over from the first.

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_api::PartialObjectMeta;
use kcm_framework::{CacheVersions, ControllerState, Loops, Predecessor};
use kcm_informers::ListOptions;
use kcm_sandbox_apiserver::{Fault, Sandbox, Verb};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{
    Initialized, Options, PARTS, SETS, Setup, Turn, World, descriptor, part, sandbox, seconds, settle,
};

/// A manager that creates missing parts and deletes surplus parts.
async fn world(sandbox: &Sandbox) -> World {
    World::with(Options::default(), sandbox, |turn| {
        async move {
            let parts = turn.parts();
            for part in parts.iter().skip(turn.wanted()) {
                turn.delete_part(part.metadata.key.name(), &part.metadata.uid).await?;
            }
            Turn::create_missing(turn).await
        }
        .boxed()
    })
    .await
}

async fn standby(sandbox: &Sandbox) -> World {
    let world = world(sandbox).await;
    world.manager.handle.stop_loops(seconds(0)).await;
    world
}

/// Stops the loops of a manager that leads, and returns what it hands over.
async fn stop(leader: &World) -> CacheVersions {
    let handover = leader.manager.handle.handover();
    leader.manager.handle.stop_loops(seconds(10)).await;
    handover.settled().await;
    handover.cache_versions()
}

#[tokio::test(start_paused = true)]
async fn no_loop_begins_before_each_cache_that_it_reads_shows_every_write_of_the_predecessor() {
    for is_released in [true, false] {
        let sandbox = sandbox();
        let leader = world(&sandbox).await;
        leader.create_set("a", 5);
        settle().await;
        let mut successor = standby(&sandbox).await;
        tokio::time::sleep(seconds(200)).await;
        for wanted in [9, 2, 6] {
            sandbox.faults().delay_events(&PARTS, seconds(2));
            leader.scale_set("a", wanted);
            settle().await;
            let versions = stop(&leader).await;
            assert!(versions.of(&SETS).is_some(), "{versions:?}");
            assert_eq!(versions.of(&PARTS).is_some(), wanted != 2, "a deletion has no version: {versions:?}");
            let predecessor =
                if is_released { Predecessor::Released(Arc::new(versions)) } else { Predecessor::Unknown };
            let (began, visits) = (Instant::now(), successor.visits().len());
            successor.manager.handle.start_loops_after(|_| true, predecessor);
            tokio::time::sleep(seconds(1)).await;
            assert_eq!(successor.visits().len(), visits, "its watch of parts lags by two seconds");
            tokio::time::sleep(seconds(3)).await;
            assert!(successor.visits().len() > visits, "after {:?}", began.elapsed());
            assert_eq!(successor.parts().len(), wanted);
            sandbox.faults().delay_events(&PARTS, seconds(0));
            tokio::time::sleep(seconds(200)).await;
            // Back to the first.
            let versions = Predecessor::Released(Arc::new(stop(&successor).await));
            leader.manager.handle.start_loops_after(|_| true, versions);
            settle().await;
            assert_eq!(leader.parts().len(), wanted);
        }
        successor.manager.stop.drain.cancel();
        successor.manager.ended().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_waits_for_the_caches_that_it_reads_and_for_no_others() {
    let sandbox = sandbox();
    let begun = Arc::new(Mutex::new(Vec::new()));
    let mut setup = Setup::on(&sandbox);
    for (name, resource) in [("parts-controller", PARTS), ("sets-controller", SETS)] {
        let begun = Arc::clone(&begun);
        setup = setup.controller(descriptor(name), move |context| {
            let read = context.informers().informer_for::<PartialObjectMeta>(resource.clone(), ListOptions::default());
            let begun = Arc::clone(&begun);
            let running = Loops::new().task("notes", move |_| {
                begun.lock().push((name, Instant::now()));
                Box::pin(async { Ok(()) })
            });
            async move { Initialized::Ok(running.after_sync_of([read.cache()])) }
        });
    }
    let manager = setup.start();
    manager.handle.stop_loops(seconds(0)).await;
    tokio::time::sleep(seconds(100)).await;
    sandbox.faults().delay_events(&PARTS, seconds(4));
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    let since = Instant::now();
    manager.handle.start_loops_after(|_| true, Predecessor::Unknown);
    tokio::time::sleep(seconds(2)).await;
    let state = manager.handle.controller("parts-controller").unwrap();
    assert_eq!(state.state, ControllerState::WaitingForCaches);
    assert_eq!(state.loops[0].unsynced, [PARTS], "operators see what it waits for");
    tokio::time::sleep(seconds(10)).await;
    let begun: Vec<_> = begun.lock().iter().map(|(name, at)| (*name, (*at - since).as_secs())).collect();
    assert_eq!(begun, [("sets-controller", 1), ("parts-controller", 4)]);
    assert!(manager.has_metric("takeover_cache_current_seconds_count{evidence=\"watched\"} 2"));
}

#[tokio::test(start_paused = true)]
async fn a_term_may_end_while_loops_wait() {
    let sandbox = sandbox();
    let successor = standby(&sandbox).await;
    sandbox.faults().hold_watches(&PARTS);
    sandbox.create_namespace("a").unwrap();
    for _ in 0..2 {
        successor.manager.handle.start_loops_after(|_| true, Predecessor::Unknown);
        tokio::time::sleep(seconds(30)).await;
        assert_eq!(successor.manager.state("sets-controller"), ControllerState::WaitingForCaches);
        let since = Instant::now();
        successor.manager.handle.stop_loops(seconds(10)).await;
        assert_eq!(since.elapsed(), seconds(0));
        assert_eq!(successor.manager.state("sets-controller"), ControllerState::Initialized);
    }
    sandbox.faults().release_watches(&PARTS);
    successor.manager.handle.start_loops_after(|_| true, Predecessor::Unknown);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(successor.manager.state("sets-controller"), ControllerState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_a_predecessor_hands_over_covers_all_of_its_writes_or_is_missing() {
    let sandbox = sandbox();
    let leader = world(&sandbox).await;
    tokio::time::sleep(seconds(200)).await;
    leader.create_set("a", 3);
    settle().await;
    let version = || sandbox.version().into();
    let versions = || leader.manager.handle.handover().cache_versions();
    assert_eq!(versions().of(&PARTS), Some(&version()), "the last write");

    // The response to a deletion does not tell its version.
    sandbox.faults().delay_events(&PARTS, seconds(1));
    leader.scale_set("a", 2);
    settle().await;
    assert_eq!(versions().of(&PARTS), None, "the cache does not show the deletion yet");
    assert!(versions().of(&SETS).is_some());
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(versions().of(&PARTS), Some(&version()));

    // A creation whose response is lost as often as it is sent.
    let lost = Fault::on(Verb::Create).resource(PARTS).lose_answer();
    let lost = sandbox.faults().inject(lost);
    leader.scale_set("a", 3);
    settle().await;
    let since = Instant::now();
    let versions = stop(&leader).await;
    assert!(since.elapsed() > seconds(20), "it may take effect until its deadline: {:?}", since.elapsed());
    assert_eq!(versions.of(&PARTS), None, "nobody knows its version");
    assert!(versions.of(&SETS).is_some());
    lost.remove();

    // A successor that has not caught up hands over what it got.
    let successor = standby(&sandbox).await;
    leader.manager.handle.start_loops();
    tokio::time::sleep(seconds(200)).await;
    sandbox.faults().delay_events(&PARTS, seconds(2));
    leader.scale_set("a", 6);
    settle().await;
    let of_leader = stop(&leader).await;
    assert!(of_leader.of(&PARTS).is_some());
    successor.manager.handle.start_loops_after(|_| true, Predecessor::Released(Arc::new(of_leader.clone())));
    settle().await;
    assert_eq!(stop(&successor).await.of(&PARTS), of_leader.of(&PARTS));
    successor.manager.handle.start_loops_after(|_| true, Predecessor::Unknown);
    settle().await;
    assert_eq!(stop(&successor).await.of(&PARTS), None, "it has proven nothing");
}
