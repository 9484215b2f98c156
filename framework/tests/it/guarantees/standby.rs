//! A manager that steps down without ending: its loops stop, its informers stay, and no write passes the fence.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::PartialObjectMeta;
use kcm_framework::{ControllerState, Loops};
use kcm_informers::ListOptions;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{
    CONTROLLER, Initialized, Options, PARTS, SETS, Setup, World, descriptor, key, part, sandbox, seconds, settle,
};

#[tokio::test(start_paused = true)]
async fn loops_stop_and_start_again_while_informers_stay() {
    let mut world = World::start(|turn| {
        async move {
            for _ in turn.parts().len()..turn.wanted() {
                turn.create_part().await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 1);
    settle().await;
    assert_eq!(world.parts().len(), 1);
    for round in 0..3 {
        world.manager.handle.stop_loops(seconds(10)).await;
        assert_eq!(world.manager.state(CONTROLLER), ControllerState::Initialized);
        let requests = world.sandbox.requests().len();
        world.create_set(&format!("b{round}"), 2);
        tokio::time::sleep(seconds(60)).await;
        assert_eq!((world.sandbox.open_watches(&SETS), world.sandbox.open_watches(&PARTS)), (1, 1));
        assert_eq!(world.parts().len(), 1 + 2 * round);
        let since = world.sandbox.requests().into_iter().skip(requests);
        assert!(
            since.into_iter().all(|request| request.path.starts_with("/api")),
            "discovery goes on, and nothing else"
        );

        world.manager.handle.start_loops();
        settle().await;
        assert_eq!(world.manager.state(CONTROLLER), ControllerState::Running);
        assert_eq!(world.parts().len(), 1 + 2 * (round + 1), "the keys that were added meanwhile are reconciled");
    }
    let lists = world.sandbox.requests().into_iter().filter_map(|request| request.target);
    let lists = lists.filter(|target| target.resource == SETS).count();
    assert_eq!(lists, 1, "one request lists and watches the sets, from the beginning on");
    world.manager.stop.drain.cancel();
    world.manager.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_does_not_run_drops_changes_and_enqueues_what_its_caches_hold_when_it_starts() {
    const SETS_DELETED: usize = 10_000;
    const BATCH: usize = 500;
    let options = Options { workers: 1, ..Options::default() };
    let world = World::with(options, &sandbox(), |_| {
        async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(())
        }
        .boxed()
    })
    .await;
    for number in 0..3 {
        world.create_set(&format!("before{number}"), 0);
    }
    world.manager.handle.stop_loops(seconds(0)).await;
    settle().await;
    assert_eq!(world.remembered(), 0, "what waited when it stopped is found again when it starts");
    for batch in 0..SETS_DELETED / BATCH {
        let name = |number| format!("deleted{batch}-{number}");
        (0..BATCH).for_each(|number| world.create_set(&name(number), 0));
        settle().await;
        assert!(world.remembered() <= BATCH + 3, "{} keys of {} live sets", world.remembered(), BATCH + 3);
        (0..BATCH).for_each(|number| drop(world.sandbox.delete(&SETS, &key(&name(number))).unwrap()));
        settle().await;
    }
    for number in 0..200 {
        world.create_set(&format!("stays{number:03}"), 0);
    }
    world.sandbox.delete(&SETS, &key("before0")).unwrap();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(world.remembered(), 0, "a standby holds no keys");
    let before = world.visits().len();

    world.manager.handle.start_loops();
    tokio::time::sleep(Duration::from_millis(55)).await;
    world.touch("stays199");
    tokio::time::sleep(seconds(10)).await;
    let visits: Vec<String> = world.visits().split_off(before).into_iter().map(|visit| visit.name).collect();
    let place = visits.iter().position(|name| name == "stays199").unwrap();
    assert!((4..8).contains(&place), "a change that comes now goes before the backlog: {place}");
    let mut expected: Vec<String> = (0..200).map(|number| format!("stays{number:03}")).collect();
    expected.extend(["before1", "before2"].map(str::to_owned));
    let visited: BTreeSet<&String> = visits.iter().collect();
    assert_eq!(visited, expected.iter().collect::<BTreeSet<_>>());
    assert_eq!(visits.len(), 202, "each once: the change came while the key still waited");
}

#[tokio::test(start_paused = true)]
async fn a_manager_may_wait_with_its_loops_until_it_leads() {
    let sandbox = sandbox();
    let begun = Arc::new(Mutex::new(Vec::new()));
    let known = Arc::clone(&begun);
    let setup = Setup::on(&sandbox).controller(descriptor("a-controller"), move |context| {
        let parts = context.informers().informer_for::<PartialObjectMeta>(PARTS, ListOptions::default());
        let (cache, begun) = (parts.cache(), Arc::clone(&begun));
        let running = Loops::new().task("counts", move |_| {
            begun.lock().push((Instant::now(), parts.len()));
            Box::pin(async { Ok(()) })
        });
        async move { Initialized::Ok(running.after_sync_of([cache])) }
    });
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    let mut manager = setup.start();
    manager.handle.stop_loops(seconds(0)).await;
    tokio::time::sleep(seconds(100)).await;
    assert!(known.lock().is_empty());
    assert_eq!(manager.state("a-controller"), ControllerState::Initialized);
    assert!(manager.handle.informers()[0].synced, "its caches are up to date by then");
    manager.handle.start_loops();
    settle().await;
    assert_eq!(
        known.lock().iter().map(|(at, parts)| ((*at - manager.since).as_secs(), *parts)).collect::<Vec<_>>(),
        [(100, 1)]
    );
    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn loops_that_may_not_drain_are_aborted_at_once() {
    let world = World::start(|_| Box::pin(std::future::pending())).await;
    world.add("a");
    settle().await;
    let begun = Instant::now();
    world.manager.handle.stop_loops(seconds(0)).await;
    assert!(begun.elapsed() < seconds(1));
    world.manager.handle.start_loops();
    settle().await;
    assert_eq!(world.visits().len(), 2, "the key of the reconcile that was aborted is reconciled again");
}

#[tokio::test(start_paused = true)]
async fn no_write_of_the_manager_passes_its_closed_fence() {
    let world = World::start(|turn| {
        async move {
            if turn.parts().is_empty() {
                turn.create_part().await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.manager.handle.fence().close();
    world.create_set("a", 1);
    tokio::time::sleep(seconds(60)).await;
    assert!(world.parts().is_empty());
    assert!(world.sandbox.requests().iter().all(|request| request.method == "GET"));
    assert_eq!(world.parked(), [""; 0], "what was not sent is not waited for");
    world.manager.handle.fence().open();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(world.parts().len(), 1, "the key was not dropped");
}
