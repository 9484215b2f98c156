//! Contract of the cache.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::*;

#[tokio::test(start_paused = true)]
async fn ends_up_with_what_the_server_holds() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "x@1 y@2");
    stream.event("ADDED", &widget("z", 6));
    stream.event("MODIFIED", &widget("x", 7));
    stream.event("DELETED", &widget("y", 8));
    informer.wait_for_resource_version(&8.into()).await;
    assert_eq!(contents(&informer), "x@7 z@6");
}

#[tokio::test(start_paused = true)]
async fn shows_a_list_at_once_and_only_when_it_is_complete() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.asked_for("streaming list").await.accept();
    stream.event("ADDED", &widget("x", 1));
    stream.event("ADDED", &widget("y", 2));
    stream.event("ADDED", &widget("z", 3));
    stream.event("MODIFIED", &widget("x", 4));
    stream.event("DELETED", &widget("y", 5));
    yield_to_informer().await;
    assert_eq!(contents(&informer), "");
    assert!(!informer.has_synced());
    stream.end_of_initial_events(5);
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "x@4 z@3");
}

/// Number of objects of a long list.
const MANY: u64 = 5_000;

fn many(size: u64, first_version: u64) -> impl Iterator<Item = String> {
    (0..MANY).map(move |at| {
        let name = format!("w{at:05}");
        widget_with(&name, first_version + at, &format!("uid-{name}"), "", &size.to_string())
    })
}

/// The state that a reader sees between two steps of the informer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    objects: usize,
    sizes: Vec<usize>,
    notified: usize,
    version: String,
}

#[tokio::test(start_paused = true)]
async fn lets_other_tasks_run_while_a_long_list_is_committed_and_then_applies_what_came_after_it() {
    let (mut peer, _factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let by_size = informer.index("size", |widget: &Widget| [widget.size]);
    let total = std::cell::Cell::new(0);
    let all = std::cell::RefCell::new(Vec::new());
    let seen = || {
        let new = notified.take();
        total.set(total.get() + new.len());
        all.borrow_mut().extend(new);
        Seen {
            objects: informer.len(),
            sizes: [1, 2].map(|size| by_size.count(&size)).to_vec(),
            notified: total.get(),
            version: informer.last_sync_resource_version().to_string(),
        }
    };
    let watched = async |version: u64| {
        let mut states = Vec::new();
        while informer.last_sync_resource_version().is_at_least(&version.into()) != Some(true) {
            states.push(seen());
            tokio::task::yield_now().await;
        }
        states.dedup();
        states
    };
    let count = usize::try_from(MANY).unwrap();

    let stream = peer.asked_for("streaming list").await.accept();
    many(1, 1).for_each(|widget| stream.event("ADDED", &widget));
    let annotations = r#"{"k8s.io/initial-events-end":"true"}"#;
    let end = |version: u64| {
        format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}}}"#
        )
    };
    let modified = format!(r#"{{"type":"MODIFIED","object":{}}}"#, widget("w00000", MANY + 1));
    let deleted = format!(r#"{{"type":"DELETED","object":{}}}"#, widget("w00001", MANY + 2));
    // The end of the list and the events are one chunk.
    stream.send(&format!("{}\n{modified}\n{deleted}\n", end(MANY)));
    let states = watched(MANY + 2).await;
    let (before, after): (Vec<&Seen>, Vec<&Seen>) = states.iter().partition(|state| state.objects == 0);
    assert!(before.iter().all(|state| state.notified == 0 && state.sizes == [0, 0]), "{before:?}");
    assert!(after.len() > 10, "other tasks run between the slices: {after:?}");
    for state in after {
        assert_eq!((state.objects, &state.sizes), (count, &vec![count, 0]));
        assert_eq!(state.version, "", "the version moves after the last event handler");
    }
    let last = seen();
    assert_eq!((last.objects, last.notified), (count - 1, count + 2));
    let notes = std::mem::take(&mut *all.borrow_mut());
    let expected = [format!("updated w00000@1 to w00000@{}", MANY + 1), format!("removed w00001@{}", MANY + 2)];
    assert_eq!(notes[count..], expected);
    assert!(notes[..count].is_sorted() && notes[..count].iter().all(|note| note.ends_with(" (initial)")));

    // Another list, in which every object has changed.
    total.set(0);
    stream.error(410, "Expired", "too old");
    let stream = peer.asked_for("streaming list").await.accept();
    many(2, 2 * MANY).for_each(|widget| stream.event("ADDED", &widget));
    stream.send(&format!("{}\n", end(3 * MANY)));
    let states = watched(3 * MANY).await;
    let held: Vec<&Seen> = states.iter().filter(|state| state.sizes == [0, count]).collect();
    assert!(held.len() > 10, "{states:?}");
    for state in states {
        let is_old = state.objects == count - 1 && state.sizes == [count - 1, 0] && state.notified == 0;
        let is_new = state.objects == count && state.sizes == [0, count];
        assert!(is_old || is_new, "a reader sees the old contents or the new ones: {state:?}");
        assert_eq!(state.version, (MANY + 2).to_string());
    }
    assert_eq!(seen().notified, count);
}

#[tokio::test(start_paused = true)]
async fn is_in_step_with_its_indexes() {
    let (mut peer, _factory, informer) = widgets();
    let by_size = informer.index("size", |widget: &Widget| [widget.size]);
    let sized = |name, version, size| widget_with(name, version, "u", "", size);
    let seen = Notifications::default();
    let notes = seen.clone();
    let (index, cache) = (by_size.clone(), informer.clone());
    informer.add_event_handler(HandlerOptions::named("test"), move |_, _| {
        let indexed: usize = [1, 2].iter().map(|size| index.count(size)).sum();
        assert_eq!(indexed, cache.len());
        notes.note(format!("{} {}", index.count(&1), index.count(&2)));
    });
    let stream = peer.serves(5, &[sized("x", 1, "1"), sized("y", 2, "1")]).await;
    stream.event("MODIFIED", &sized("x", 6, "2"));
    stream.event("DELETED", &sized("y", 7, "1"));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!(seen.take(), ["2 0", "2 0", "1 1", "0 1"]);
    assert_eq!(by_size.get(&2)[0].metadata.key, key("x"));
}

#[tokio::test(start_paused = true)]
async fn gives_readers_what_does_not_change_under_them() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    let (read, all) = (informer.get(&key("x")).unwrap(), informer.list());
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((label(&read), all.len()), ("x@1".to_owned(), 1));
    assert_eq!(contents(&informer), "x@6");
}

#[tokio::test(start_paused = true)]
async fn lists_in_the_order_of_keys() {
    let (mut peer, _factory, informer) = widgets();
    let other = widget("a", 3).replace(r#""namespace":"a""#, r#""namespace":"b""#);
    let _stream = peer.serves(5, &[other, widget("y", 1), widget("x", 2)]).await;
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "x@2 y@1 a@3");
    let names: Vec<_> = informer.in_namespace("a").iter().map(|widget| label(widget)).collect();
    assert_eq!(names, ["x@2", "y@1"]);
    assert!(informer.in_namespace("c").is_empty());
}

#[tokio::test(start_paused = true)]
async fn shares_an_index_among_users_of_one_name_and_function_and_drops_it_with_the_last() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn by_size(informer: &Informer<Widget>) -> kcm_informers::Index<Widget, u32> {
        informer.index("size", |widget: &Widget| {
            CALLS.fetch_add(1, Relaxed);
            [widget.size]
        })
    }
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    let (one, other) = (by_size(&informer), by_size(&informer));
    stream.event("ADDED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((one.count(&1), other.count(&1), CALLS.swap(0, Relaxed)), (1, 1, 1));
    drop(one);
    stream.event("ADDED", &widget("y", 7));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!((other.count(&1), CALLS.swap(0, Relaxed)), (2, 1));
    drop(other);
    stream.event("ADDED", &widget("z", 8));
    informer.wait_for_resource_version(&8.into()).await;
    assert_eq!(CALLS.swap(0, Relaxed), 0);
}
