//! A manager that steps down without ending: its loops stop, its informers stay, and no write passes the fence.

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_api::PartialObjectMeta;
use kcm_framework::{ControllerState, Loops};
use kcm_informers::ListOptions;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{
    CONTROLLER, Initialized, PARTS, SETS, Setup, World, descriptor, part, sandbox, seconds, settle,
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
