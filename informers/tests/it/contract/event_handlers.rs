//! Contract of event handlers.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

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
async fn of_different_phases_are_not_resynced_at_the_same_moment() {
    let (mut peer, _factory, informer) = widgets();
    let began = Instant::now();
    let times = Notifications::default();
    for (name, phase) in [("first", 15), ("second", 40)] {
        let notes = times.clone();
        let options = HandlerOptions::named(name).resync_period(seconds(60)).resync_phase(seconds(phase));
        informer.add_event_handler(options, move |_, origin| {
            if origin == kcm_informers::Origin::Resync {
                notes.note(format!("{name} after {}s", began.elapsed().as_secs()));
            }
        });
    }
    let _stream = peer.serves(5, &[widget("x", 1)]).await;
    tokio::time::sleep_until(began + seconds(110)).await;
    assert_eq!(times.take(), ["first after 15s", "second after 40s", "first after 75s", "second after 100s"]);
}

#[tokio::test(start_paused = true)]
async fn that_panic_are_notified_of_that_change_again_and_hold_up_no_other_handler() {
    let (mut peer, _factory, informer) = widgets();
    let notified = Notifications::default();
    let notes = notified.clone();
    let panics = Arc::new(AtomicUsize::new(3));
    let left = Arc::clone(&panics);
    informer.add_event_handler(HandlerOptions::named("panics"), move |change, origin| {
        let is_bad = change.key().name() == "bad";
        let panics = is_bad && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        assert!(!panics, "as it should");
        notes.change(change, origin);
    });
    let other = add_event_handler(&informer, "other");
    let stream = peer.serves(5, &[widget("bad", 1), widget("good", 2)]).await;
    stream.event("MODIFIED", &widget("good", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(notified.take(), ["added good@2 (initial)", "updated good@2 to good@6"]);
    assert_eq!(other.take().len(), 3);
    assert_eq!(contents(&informer), "bad@1 good@6");
    // It panics again after a second, and at the change in between, and takes both after four more.
    tokio::time::sleep(Duration::from_millis(1_001)).await;
    assert_eq!(panics.load(Relaxed), 1);
    stream.event("MODIFIED", &widget("bad", 7));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!((panics.load(Relaxed), notified.take()), (0, Vec::new()));
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(notified.take(), [""; 0]);
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(notified.take(), ["added bad@1", "updated bad@1 to bad@7"]);
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(notified.take(), [""; 0]);
    assert_eq!(other.take(), ["updated bad@1 to bad@7"]);
}

#[tokio::test(start_paused = true)]
async fn that_panic_for_an_update_get_its_old_state_when_the_object_is_deleted() {
    let (mut peer, _factory, informer) = widgets();
    let notified = Notifications::default();
    let notes = notified.clone();
    informer.add_event_handler(HandlerOptions::named("panics"), move |change, origin| {
        assert!(!matches!(change, Change::Updated { .. }), "as it should");
        notes.change(change, origin);
    });
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    stream.event("DELETED", &widget("x", 7));
    informer.wait_for_resource_version(&7.into()).await;
    let told = ["added x@1 (initial)", "removed x@7", "removed perhaps x@1", "removed perhaps x@6"];
    assert_eq!(notified.take(), told);
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(notified.take(), [""; 0]);
}

/// Number of objects of a cache that one slice does not show.
const MANY: u64 = 10_000;

/// An informer of many widgets, and the stream of its events.
async fn many_widgets() -> (Peer, kcm_informers::Factory, Informer<Widget>, Stream) {
    let (mut peer, factory, informer) = widgets();
    let all: Vec<String> = (1..=MANY).map(|version| widget(&name(version), version)).collect();
    let stream = peer.serves(MANY, &all).await;
    informer.wait_synced().await;
    (peer, factory, informer, stream)
}

fn name(version: u64) -> String {
    format!("w{version:05}")
}

fn place(notes: &[String], note: &str) -> usize {
    let places: Vec<usize> = (0..notes.len()).filter(|at| notes[*at] == note).collect();
    assert_eq!(places.len(), 1, "{note} once");
    places[0]
}

#[tokio::test(start_paused = true)]
async fn that_are_added_late_to_a_large_cache_get_each_object_before_its_changes() {
    let (_peer, _factory, informer, stream) = many_widgets().await;
    let notified = add_event_handler(&informer, "late");
    let mut notes = notified.take();
    assert!(notes.len() > 10 && notes.len() < 1_000, "a slice: {}", notes.len());
    stream.event("MODIFIED", &widget(&name(MANY), MANY + 1));
    stream.event("DELETED", &widget(&name(MANY - 1), MANY + 2));
    stream.event("ADDED", &widget("w99999", MANY + 3));
    stream.event("MODIFIED", &widget(&name(1), MANY + 4));
    stream.event("ADDED", &widget("w00000", MANY + 5));
    stream.event("MODIFIED", &widget(&name(MANY), MANY + 6));
    informer.wait_for_resource_version(&(MANY + 6).into()).await;
    notes.extend(notified.take());
    assert!(notes.len() < 8_000, "events do not wait for the slices: {}", notes.len());
    yield_to_informer().await;
    notes.extend(notified.take());
    let last = name(MANY);
    let changes = [
        format!("added {last}@{MANY} (initial)"),
        format!("updated {last}@{MANY} to {last}@{}", MANY + 1),
        format!("added {0}@{1} (initial)", name(MANY - 1), MANY + 2),
        format!("removed {}@{}", name(MANY - 1), MANY + 2),
        format!("added w99999@{}", MANY + 3),
        format!("updated w00001@1 to w00001@{}", MANY + 4),
        format!("added w00000@{}", MANY + 5),
        format!("updated {last}@{} to {last}@{}", MANY + 1, MANY + 6),
    ];
    let places: Vec<usize> = changes.iter().map(|change| place(&notes, change)).collect();
    assert!(places.is_sorted(), "{places:?}");
    let initial = notes.iter().filter(|note| note.starts_with("added") && note.ends_with("(initial)")).count();
    assert_eq!(u64::try_from(initial), Ok(MANY), "each object once");
    assert_eq!(notes.len(), initial + 6);
}

#[tokio::test(start_paused = true)]
async fn that_are_notified_again_get_every_object_as_added_and_changes_go_first() {
    let (_peer, _factory, informer, stream) = many_widgets().await;
    let notified = Notifications::default();
    let notes = notified.clone();
    let id = informer.add_event_handler(HandlerOptions::named("again"), move |change, origin| {
        notes.change(change, origin);
    });
    let other = add_event_handler(&informer, "other");
    yield_to_informer().await;
    assert_eq!((notified.take().len(), other.take().len()), (10_000, 10_000));
    informer.notify_again(id);
    assert_eq!(notified.take(), [""; 0], "the task of the informer does it");
    stream.event("MODIFIED", &widget(&name(MANY), MANY + 1));
    stream.event("DELETED", &widget(&name(1), MANY + 2));
    informer.wait_for_resource_version(&(MANY + 2).into()).await;
    let mut notes = notified.take();
    assert!(notes.len() < 8_000, "events do not wait for the slices: {}", notes.len());
    yield_to_informer().await;
    notes.extend(notified.take());
    let last = name(MANY);
    let updated = place(&notes, &format!("updated {last}@{MANY} to {last}@{}", MANY + 1));
    let again = place(&notes, &format!("added {last}@{} (initial)", MANY + 1));
    assert!(updated < again, "the pass shows the state that the cache has then");
    let shown = notes.iter().filter(|note| note.ends_with("(initial)")).count();
    assert!((9_999..=10_000).contains(&shown), "{shown}");
    assert_eq!(other.take().len(), 2, "no other handler is notified");
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
