//! What subscribers are told.

use super::*;

#[tokio::test(start_paused = true)]
async fn are_told_of_each_change_in_order() {
    let (mut peer, _factory, informer) = widgets();
    let told = add_event_handler(&informer, "test");
    let stream = peer.serves(5, &[widget("y", 2), widget("x", 1)]).await;
    stream.event("ADDED", &widget("z", 6));
    stream.event("MODIFIED", &widget("z", 7));
    stream.event("DELETED", &widget("z", 8));
    informer.wait_for_resource_version(&8.into()).await;
    assert_eq!(
        told.take(),
        ["added x@1 (initial)", "added y@2 (initial)", "added z@6", "updated z@6 to z@7", "removed z@8"]
    );
}

#[tokio::test(start_paused = true)]
async fn are_told_one_after_the_other_in_the_order_in_which_they_came() {
    let (mut peer, _factory, informer) = widgets();
    let told = Told::default();
    for name in ["first", "second"] {
        let notes = told.clone();
        informer.add_event_handler(HandlerOptions { name, resync_period: None }, move |change, _| {
            notes.note(format!("{name} {}", label(change.object())));
        });
    }
    let _stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    assert_eq!(told.take(), ["first x@1", "second x@1", "first y@2", "second y@2"]);
}

#[tokio::test(start_paused = true)]
async fn that_come_late_first_get_what_the_cache_holds() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    let told = add_event_handler(&informer, "late");
    assert_eq!(told.take(), ["added x@1 (initial)", "added y@2 (initial)"]);
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(told.take(), ["updated x@1 to x@6"]);
}

/// A thread of its own subscribes again and again while changes are told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_come_late_miss_nothing_and_hear_nothing_twice() {
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
            (1..CHANGES).step_by(40).map(begin).collect::<Vec<Told>>()
        })
    };
    for version in 2..=CHANGES {
        stream.event("MODIFIED", &widget("x", version));
        tokio::task::yield_now().await;
    }
    informer.wait_for_resource_version(&CHANGES.into()).await;
    for told in subscriber.join().unwrap() {
        let told = told.take();
        let first: u64 = told[0].trim_start_matches("added x@").trim_end_matches(" (initial)").parse().unwrap();
        let expected: Vec<String> =
            (first..CHANGES).map(|version| format!("updated x@{version} to x@{}", version + 1)).collect();
        assert_eq!(told[1..], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn see_an_object_made_again_under_its_name_as_a_removal_and_an_addition() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    let told = add_event_handler(&informer, "test");
    told.take();
    stream.event("ADDED", &widget_with("x", 7, "another", "", "1"));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!(told.take(), ["removed perhaps x@1", "added x@7"]);
}

#[tokio::test(start_paused = true)]
async fn are_not_told_of_a_version_that_the_cache_holds() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    let told = add_event_handler(&informer, "test");
    told.take();
    stream.event("MODIFIED", &widget("x", 1));
    stream.event("DELETED", &widget("never-seen", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert!(told.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn are_told_of_a_new_list_only_where_it_differs_and_what_vanished_is_uncertain() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("gone", 1), widget("same", 2), widget("newer", 3)]).await;
    informer.wait_synced().await;
    let told = add_event_handler(&informer, "test");
    told.take();
    let before = informer.get(&key("same")).unwrap();
    stream.error(410, "Expired", "too old");
    let _stream = peer.serves(9, &[widget("added", 7), widget("newer", 8), widget("same", 2)]).await;
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(told.take(), ["removed perhaps gone@1", "added added@7", "updated newer@3 to newer@8"]);
    assert!(std::sync::Arc::ptr_eq(&before, &informer.get(&key("same")).unwrap()), "what is the same is kept");
}

#[tokio::test(start_paused = true)]
async fn with_a_period_are_told_of_everything_again_and_others_are_not() {
    let (mut peer, _factory, informer) = widgets();
    let never = add_event_handler(&informer, "never");
    let told = Told::default();
    let notes = told.clone();
    let began = Instant::now();
    informer.add_event_handler(
        HandlerOptions { name: "often", resync_period: Some(seconds(60)) },
        move |change, origin| {
            notes.change(change, origin);
        },
    );
    let stream = peer.serves(5, &[widget("y", 2), widget("x", 1)]).await;
    informer.wait_synced().await;
    told.take();
    never.take();
    tokio::time::sleep_until(began + Duration::from_millis(59_999)).await;
    assert!(told.take().is_empty(), "not before its time");
    tokio::time::sleep_until(began + Duration::from_millis(60_001)).await;
    assert_eq!(told.take(), ["updated x@1 to x@1 (resync)", "updated y@2 to y@2 (resync)"]);
    tokio::time::sleep_until(began + Duration::from_millis(120_001)).await;
    assert_eq!(told.take().len(), 2, "period after period");
    assert!(never.take().is_empty());
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn that_panic_lose_that_change_and_nobody_else_loses_anything() {
    let (mut peer, _factory, informer) = widgets();
    let told = Told::default();
    let notes = told.clone();
    informer.add_event_handler(HandlerOptions { name: "panics", resync_period: None }, move |change, _| {
        assert_ne!(change.key().name(), "bad");
        notes.note(label(change.object()));
    });
    let other = add_event_handler(&informer, "other");
    let stream = peer.serves(5, &[widget("bad", 1), widget("good", 2)]).await;
    stream.event("MODIFIED", &widget("good", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(told.take(), ["good@2", "good@6"]);
    assert_eq!(other.take().len(), 3);
    assert_eq!(contents(&informer), "bad@1 good@6");
}

#[tokio::test(start_paused = true)]
async fn that_unsubscribe_hear_nothing_more() {
    let (mut peer, _factory, informer) = widgets();
    let told = Told::default();
    let notes = told.clone();
    let id = informer.add_event_handler(HandlerOptions { name: "test", resync_period: None }, move |change, origin| {
        notes.change(change, origin);
    });
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    told.take();
    informer.remove_event_handler(id);
    informer.remove_event_handler(id);
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert!(told.take().is_empty());
}
