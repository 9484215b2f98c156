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
