//! Contract of event handlers.

use super::*;

#[tokio::test(start_paused = true)]
async fn are_notified_of_each_change_in_order() {
    let (mut peer, _factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let stream = peer.serves(5, &[widget("y", 2), widget("x", 1)]).await;
    stream.event("ADDED", &widget("z", 6));
    stream.event("MODIFIED", &widget("z", 7));
    stream.event("DELETED", &widget("z", 8));
    informer.wait_for_resource_version(&8.into()).await;
    assert_eq!(
        notified.take(),
        ["added x@1 (initial)", "added y@2 (initial)", "added z@6", "updated z@6 to z@7", "removed z@8"]
    );
}

#[tokio::test(start_paused = true)]
async fn are_notified_one_after_the_other_in_the_order_of_registration() {
    let (mut peer, _factory, informer) = widgets();
    let notified = Notifications::default();
    for name in ["first", "second"] {
        let notes = notified.clone();
        informer.add_event_handler(HandlerOptions::named(name), move |change, _| {
            notes.note(format!("{name} {}", label(change.object())));
        });
    }
    let _stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    assert_eq!(notified.take(), ["first x@1", "second x@1", "first y@2", "second y@2"]);
}

#[tokio::test(start_paused = true)]
async fn that_are_added_late_first_get_what_the_cache_holds() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    let notified = add_event_handler(&informer, "late");
    assert_eq!(notified.take(), ["added x@1 (initial)", "added y@2 (initial)"]);
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(notified.take(), ["updated x@1 to x@6"]);
}

/// A thread of its own subscribes again and again while changes are notified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_are_added_late_miss_no_change_and_get_none_twice() {
    const CHANGES: u64 = 2_000;
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(1, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    let subscriber = {
        let informer = informer.clone();
        std::thread::spawn(move || {
            let begin = |at: u64| {
                while informer.last_sync_resource_version().is_at_least(&at.into()) != Some(true) {
                    std::thread::yield_now();
                }
                add_event_handler(&informer, "late")
            };
            (1..CHANGES).step_by(40).map(begin).collect::<Vec<Notifications>>()
        })
    };
    for version in 2..=CHANGES {
        stream.event("MODIFIED", &widget("x", version));
        tokio::task::yield_now().await;
    }
    informer.wait_for_resource_version(&CHANGES.into()).await;
    for notified in subscriber.join().unwrap() {
        let notified = notified.take();
        let first: u64 = notified[0].trim_start_matches("added x@").trim_end_matches(" (initial)").parse().unwrap();
        let expected: Vec<String> =
            (first..CHANGES).map(|version| format!("updated x@{version} to x@{}", version + 1)).collect();
        assert_eq!(notified[1..], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn see_a_recreated_object_as_a_deletion_and_an_addition() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    let notified = add_event_handler(&informer, "test");
    notified.take();
    stream.event("ADDED", &widget_with("x", 7, "another", "", "1"));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!(notified.take(), ["removed perhaps x@1", "added x@7"]);
}

#[tokio::test(start_paused = true)]
async fn are_not_notified_of_a_version_that_the_cache_holds() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    let notified = add_event_handler(&informer, "test");
    notified.take();
    stream.event("MODIFIED", &widget("x", 1));
    stream.event("DELETED", &widget("never-seen", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert!(notified.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn are_notified_of_a_new_list_only_where_it_differs_and_the_final_state_of_deleted_objects_is_unknown() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("gone", 1), widget("same", 2), widget("newer", 3)]).await;
    informer.wait_synced().await;
    let notified = add_event_handler(&informer, "test");
    notified.take();
    let before = informer.get(&key("same")).unwrap();
    stream.error(410, "Expired", "too old");
    let _stream = peer.serves(9, &[widget("added", 7), widget("newer", 8), widget("same", 2)]).await;
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(notified.take(), ["removed perhaps gone@1", "added added@7", "updated newer@3 to newer@8"]);
    assert!(std::sync::Arc::ptr_eq(&before, &informer.get(&key("same")).unwrap()), "what is the same is kept");
}

#[tokio::test(start_paused = true)]
async fn with_a_resync_period_are_notified_of_every_object_again_and_others_are_not() {
    let (mut peer, _factory, informer) = widgets();
    let never = add_event_handler(&informer, "never");
    let notified = Notifications::default();
    let notes = notified.clone();
    let began = Instant::now();
    informer.add_event_handler(HandlerOptions::named("often").resync_period(seconds(60)), move |change, origin| {
        notes.change(change, origin);
    });
    let stream = peer.serves(5, &[widget("y", 2), widget("x", 1)]).await;
    informer.wait_synced().await;
    notified.take();
    never.take();
    tokio::time::sleep_until(began + Duration::from_millis(59_999)).await;
    assert!(notified.take().is_empty(), "not before its time");
    tokio::time::sleep_until(began + Duration::from_millis(60_001)).await;
    assert_eq!(notified.take(), ["updated x@1 to x@1 (resync)", "updated y@2 to y@2 (resync)"]);
    tokio::time::sleep_until(began + Duration::from_millis(120_001)).await;
    assert_eq!(notified.take().len(), 2, "period after period");
    assert!(never.take().is_empty());
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn that_panic_miss_that_change_and_no_other_handler_does() {
    let (mut peer, _factory, informer) = widgets();
    let notified = Notifications::default();
    let notes = notified.clone();
    informer.add_event_handler(HandlerOptions::named("panics"), move |change, _| {
        assert_ne!(change.key().name(), "bad");
        notes.note(label(change.object()));
    });
    let other = add_event_handler(&informer, "other");
    let stream = peer.serves(5, &[widget("bad", 1), widget("good", 2)]).await;
    stream.event("MODIFIED", &widget("good", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(notified.take(), ["good@2", "good@6"]);
    assert_eq!(other.take().len(), 3);
    assert_eq!(contents(&informer), "bad@1 good@6");
}

#[tokio::test(start_paused = true)]
async fn that_are_removed_are_not_notified_any_more() {
    let (mut peer, _factory, informer) = widgets();
    let notified = Notifications::default();
    let notes = notified.clone();
    let id = informer.add_event_handler(HandlerOptions::named("test"), move |change, origin| {
        notes.change(change, origin);
    });
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    notified.take();
    informer.remove_event_handler(id);
    informer.remove_event_handler(id);
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert!(notified.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn are_removed_with_the_registrations_of_their_user() {
    let (mut peer, factory, informer) = widgets();
    let registrations = Registrations::new();
    let of_user = factory.with_registrations(&registrations).informer::<Widget>(ListOptions::default());
    let (removed, other) = (add_event_handler(&of_user, "removed"), add_event_handler(&informer, "other"));
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    assert_eq!((removed.take().len(), other.take().len()), (1, 1));
    registrations.remove_all();
    assert!(removed.is_unused(), "the handler is dropped");
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((removed.take().len(), other.take().len()), (0, 1));
}
