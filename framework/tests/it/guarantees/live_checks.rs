//! Live checks of pending writes are few: one list of each cache and namespace, in pages.

use futures::FutureExt as _;
use kcm_sandbox_apiserver::{Fault, Request, Status, Verb};

use crate::guarantees::support::{Options, PARTS, World, part, sandbox, seconds, settle};

/// The lists of parts since the last call.
fn lists(world: &World) -> Vec<Request> {
    let mut requests = world.sandbox.requests();
    world.sandbox.clear_requests();
    let is_list = |request: &Request| {
        request.target.as_ref().is_some_and(|target| target.verb == Verb::List && target.resource == PARTS)
    };
    requests.retain(is_list);
    requests
}

/// A world in which each of `sets` has created a part that the cache does not show, beside a thousand others of `other`.
async fn waiting(sets: &[&str], other: &str) -> World {
    let sandbox = sandbox();
    for number in 0..1000 {
        sandbox.create(&PARTS, part(&format!("{other}-{number:04}"), "other")).unwrap();
    }
    let world = World::with(Options::default(), &sandbox, |turn| turn.create_one_missing().boxed()).await;
    world.sandbox.faults().hold_watches(&PARTS);
    for set in sets {
        world.create_set(set, 1);
    }
    settle().await;
    assert_eq!(world.parked().len(), sets.len());
    world.sandbox.clear_requests();
    world
}

#[tokio::test(start_paused = true)]
async fn the_writes_of_many_keys_to_one_namespace_are_checked_by_one_list() {
    let world = waiting(&["a", "b", "c", "d", "e"], "z").await;
    tokio::time::sleep(seconds(31)).await;
    let lists = lists(&world);
    assert_eq!(lists.iter().map(|list| list.query.as_str()).collect::<Vec<_>>(), ["limit=500"]);
    let accept = lists[0].headers.get("accept").unwrap().to_str().unwrap();
    assert!(accept.contains("as=PartialObjectMetadataList"), "{accept}");
    assert_eq!(world.parked().len(), 5, "they are there: the cache will show them");
    world.sandbox.faults().release_watches(&PARTS);
    settle().await;
    assert!(world.parked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_check_reads_no_page_beyond_the_last_object_that_it_is_about() {
    let world = waiting(&["a", "y"], "m").await;
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(lists(&world).len(), 3, "two pages of others come before the last");
    let world = waiting(&["a", "b"], "m").await;
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(lists(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_check_of_many_writes_that_fails_is_repeated_and_releases_no_key() {
    let world = waiting(&["a", "b", "c"], "z").await;
    let failing = Fault::on(Verb::List).resource(PARTS).times(1).fail(Status::new(503, "ServiceUnavailable", "no"));
    world.sandbox.faults().inject(failing);
    tokio::time::sleep(seconds(61)).await;
    assert_eq!((lists(&world).len(), world.parked().len()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn one_list_shows_the_outcome_of_all_writes_whose_answers_were_lost() {
    let sandbox = sandbox();
    let world = World::with(Options::default(), &sandbox, |turn| turn.create_one_missing().boxed()).await;
    let creations = || Fault::on(Verb::Create).resource(PARTS);
    world.sandbox.faults().inject(creations().times(2).fail(Status::new(500, "InternalError", "no")));
    for set in ["a", "b", "c"] {
        world.create_set(set, 1);
    }
    settle().await;
    assert_eq!((world.parts().len(), world.parked().len()), (1, 2));
    world.sandbox.clear_requests();
    tokio::time::sleep(seconds(34)).await;
    assert_eq!(lists(&world).len(), 1);
    assert_eq!((world.parts().len(), world.parked().len()), (3, 0));
}
