//! Contract of the last sync resource version.

use super::*;

#[tokio::test(start_paused = true)]
async fn moves_after_event_handlers_and_before_hooks_and_waiters() {
    let (mut peer, _factory, informer) = widgets();
    let order = Notifications::default();
    let (notes, cache) = (order.clone(), informer.clone());
    informer.add_event_handler(HandlerOptions::named("test"), move |change, _| {
        let in_cache = cache.get(change.key()).map_or("gone".to_owned(), |widget| label(&widget));
        notes.note(format!("notified {in_cache} observed {}", cache.last_sync_resource_version()));
    });
    let (notes, cache) = (order.clone(), informer.clone());
    let _hook = informer.cache().on_progress(Box::new(move |progress| {
        assert_eq!(*progress.resource_version, cache.last_sync_resource_version());
        notes.note(format!("hook {} {:?}", progress.resource_version, progress.ended));
    }));
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    assert_eq!(order.take(), ["notified x@1 observed ", "hook 5 None"]);
    stream.event("MODIFIED", &terminating("x", 6));
    stream.event("MODIFIED", &terminating("x", 7));
    stream.event("DELETED", &terminating("x", 8));
    stream.bookmark(9);
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(
        order.take(),
        [
            "notified x@6 observed 5",
            "hook 6 Some(Uid(uid-x))",
            "notified x@7 observed 6",
            "hook 7 None",
            "notified gone observed 7",
            "hook 8 Some(Uid(uid-x))",
            "hook 9 None",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn is_unset_before_the_first_list_then_follows_list_events_and_bookmarks() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.asked_for("streaming list").await.accept();
    stream.event("ADDED", &widget("x", 3));
    stream.bookmark(4);
    yield_to_informer().await;
    assert!(informer.last_sync_resource_version().is_unset());
    stream.end_of_initial_events(5);
    yield_to_informer().await;
    assert_eq!(informer.last_sync_resource_version(), 5.into());
    stream.event("MODIFIED", &widget("x", 8));
    yield_to_informer().await;
    assert_eq!(informer.last_sync_resource_version(), 8.into());
    stream.bookmark(12);
    yield_to_informer().await;
    assert_eq!(informer.last_sync_resource_version(), 12.into());
}

#[tokio::test(start_paused = true)]
async fn wakes_a_waiter_with_the_event_that_reaches_its_version() {
    let (mut peer, _factory, informer) = widgets();
    let eight = ResourceVersion::from(8);
    let mut waiter = Box::pin(informer.wait_for_resource_version(&eight));
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    stream.event("MODIFIED", &widget("x", 7));
    assert!(tokio::time::timeout(seconds(1), &mut waiter).await.is_err(), "7 is not yet 8");
    stream.event("MODIFIED", &widget("x", 10));
    waiter.await;
    assert_eq!(contents(&informer), "x@10");
    informer.wait_for_resource_version(&3.into()).await;
}

#[tokio::test(start_paused = true)]
async fn does_not_block_on_a_version_that_does_not_compare() {
    let (mut peer, _factory, informer) = widgets();
    let _stream = peer.serves(5, &[]).await;
    informer.wait_for_resource_version(&ResourceVersion::from("not a number")).await;
}

#[tokio::test(start_paused = true)]
async fn passes_an_object_that_cannot_be_decoded() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    stream.event("MODIFIED", &undecodable("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(informer.last_sync_resource_version(), 6.into());
    let state = informer.cache().object_state(&key("x")).unwrap();
    assert_eq!((state.uid, state.resource_version), ("uid-x".into(), 6.into()));
    stream.event("MODIFIED", r#"{"metadata":"broken"}"#);
    stream.event("MODIFIED", &widget("y", 8));
    informer.wait_for_resource_version(&8.into()).await;
    assert_eq!(contents(&informer), "y@8");
}

#[tokio::test(start_paused = true)]
async fn calls_no_hook_whose_registration_was_dropped() {
    let (mut peer, _factory, informer) = widgets();
    let (kept, dropped) = (Notifications::default(), Notifications::default());
    let hook = |notifications: &Notifications| {
        let notes = notifications.clone();
        informer.cache().on_progress(Box::new(move |progress| notes.note(progress.resource_version.to_string())))
    };
    let _kept = hook(&kept);
    let registration = hook(&dropped);
    let stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    drop(registration);
    assert!(dropped.is_unused());
    stream.bookmark(6);
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((kept.take(), dropped.take()), (vec!["5".to_owned(), "6".to_owned()], vec!["5".to_owned()]));
}
