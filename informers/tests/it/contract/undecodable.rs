//! Contract of an object that cannot be decoded.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use kcm_informers::Lookup;

use super::*;

#[tokio::test(start_paused = true)]
async fn is_known_by_its_metadata() {
    let owned = r#","ownerReferences":[{"apiVersion":"v1","kind":"Set","name":"s","uid":"owner","controller":true}]"#;
    let (mut peer, _factory, informer) = widgets();
    let _stream = peer
        .serves(
            5,
            &[
                widget_with("owned", 1, "uid-owned", owned, r#""big""#),
                widget_with("named", 2, "uid-named", r#","labels":"none""#, "1"),
                r#"{"metadata":{"labels":"none"}}"#.to_owned(),
                widget("y", 3),
            ],
        )
        .await;
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "y@3");
    let object = informer.undecodable(&key("owned")).unwrap();
    assert_eq!((object.uid.clone(), object.resource_version.clone()), ("uid-owned".into(), 1.into()));
    assert!(object.is_controlled_by(&"owner".into()) && !object.is_controlled_by(&"another".into()));
    let object = informer.undecodable(&key("named")).unwrap();
    assert_eq!((object.uid.clone(), object.meta.is_none()), ("uid-named".into(), true));
    assert_eq!(informer.undecodable(&key("y")), None);
    let names: Vec<_> = informer.undecodable_objects().iter().map(|object| object.key.name().to_owned()).collect();
    assert_eq!((names, informer.status().undecodable), (vec!["named".to_owned(), "owned".to_owned()], 3));
}

#[tokio::test(start_paused = true)]
async fn leaves_the_cache_as_undecodable_and_comes_back_as_if_added() {
    let (mut peer, _factory, informer) = widgets();
    let (notified, hooked) = (add_event_handler(&informer, "test"), Notifications::default());
    let (notes, cache) = (hooked.clone(), informer.clone());
    let _hook = informer.cache().on_progress(Box::new(move |progress| {
        let known = usize::from(cache.undecodable(&key("x")).is_some());
        assert!(known + cache.len() == 1 || progress.ended.is_some(), "it is in one of both");
        notes.note(format!("{:?} {}", progress.ended, !progress.undecodable_changed.is_empty()));
    }));
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    notified.take();
    hooked.take();
    stream.event("MODIFIED", &undecodable("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((notified.take(), hooked.take()), (vec!["undecodable x@1".to_owned()], vec!["None true".to_owned()]));
    stream.event("MODIFIED", &widget("x", 7));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!((notified.take(), hooked.take()), (vec!["added x@7".to_owned()], vec!["None true".to_owned()]));
    // Its end is reported, and so is the end of another object under its name.
    stream.event("MODIFIED", &widget_with("x", 8, "another", "", r#""big""#));
    let deleting = r#","deletionTimestamp":"2030-01-01T00:00:00Z""#;
    stream.event("MODIFIED", &widget_with("x", 9, "another", deleting, r#""big""#));
    stream.event("DELETED", &widget_with("x", 10, "another", deleting, r#""big""#));
    informer.wait_for_resource_version(&10.into()).await;
    let ended = ["Some(Uid(uid-x)) true", "Some(Uid(another)) true", "Some(Uid(another)) true"];
    assert_eq!(
        (notified.take(), hooked.take()),
        (vec!["removed perhaps x@7".to_owned()], ended.map(str::to_owned).to_vec())
    );
}

#[tokio::test(start_paused = true)]
async fn that_was_in_the_cache_is_notified_as_deleted_when_it_is_deleted() {
    let names = ["deleted", "deleted-decodable", "recreated", "recreated-undecodable", "unlisted", "listed", "decoded"];
    let (mut peer, _factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let first: Vec<String> = names.iter().zip(1..).map(|(name, version)| widget(name, version)).collect();
    let stream = peer.serves(20, &[&first[..], &[undecodable("never-decoded", 19)]].concat()).await;
    informer.wait_synced().await;
    for (name, version) in names.iter().zip(21..) {
        stream.event("MODIFIED", &undecodable(name, version));
    }
    informer.wait_for_resource_version(&27.into()).await;
    let undecodable_names: Vec<String> =
        names.iter().zip(1..).map(|(name, v)| format!("undecodable {name}@{v}")).collect();
    assert_eq!(notified.take().split_off(names.len()), undecodable_names);
    stream.event("MODIFIED", &undecodable("deleted", 30));
    stream.event("DELETED", &undecodable("deleted", 31));
    stream.event("DELETED", &widget("deleted-decodable", 32));
    stream.event("ADDED", &widget_with("recreated", 33, "another", "", "1"));
    stream.event("ADDED", &widget_with("recreated-undecodable", 34, "another", "", r#""big""#));
    stream.event("DELETED", &undecodable("never-decoded", 35));
    informer.wait_for_resource_version(&35.into()).await;
    assert_eq!(
        notified.take(),
        [
            "removed perhaps deleted@1",
            "removed deleted-decodable@32",
            "removed perhaps recreated@3",
            "added recreated@33",
            "removed perhaps recreated-undecodable@4",
        ]
    );
    // Of a list, the objects that it does not have, and not those that it has.
    stream.error(410, "Expired", "too old");
    let list =
        [widget_with("recreated", 33, "another", "", r#""big""#), undecodable("listed", 26), widget("decoded", 36)];
    let stream = peer.serves(40, &list).await;
    informer.wait_for_resource_version(&40.into()).await;
    assert_eq!(notified.take(), ["removed perhaps unlisted@5", "undecodable recreated@33", "added decoded@36"]);
    stream.event("DELETED", &undecodable("listed", 41));
    informer.wait_for_resource_version(&41.into()).await;
    assert_eq!(notified.take(), ["removed perhaps listed@6"]);
}

#[tokio::test(start_paused = true)]
async fn is_found_by_a_lookup_and_is_not_absent() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[undecodable("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    let found = |name: &str| match informer.lookup(&key(name)) {
        Lookup::Found(widget) => format!("found {}", widget.metadata.resource_version),
        Lookup::Absent => "absent".to_owned(),
        Lookup::Undecodable(object) => format!("undecodable {}", object.resource_version),
    };
    assert_eq!([found("x"), found("y"), found("z")], ["undecodable 1", "found 2", "absent"]);
    stream.event("DELETED", &undecodable("x", 6));
    stream.event("MODIFIED", &undecodable("y", 7));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!([found("x"), found("y")], ["absent", "undecodable 7"]);
}

#[tokio::test(start_paused = true)]
async fn is_reported_once_for_each_error() {
    struct Counted(Arc<AtomicUsize>);
    impl kcm_informers::Metrics for Counted {
        fn undecodable(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let (client, mut peer) = peer();
    let mut options = kcm_informers::FactoryOptions::new(client, 7);
    let reports = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reports);
    options.metrics = Arc::new(move |_| Arc::new(Counted(Arc::clone(&counted))));
    let factory = kcm_informers::Factory::new(options);
    let informer = factory.informer::<Widget>(ListOptions::default());
    factory.start();
    let broken = r#"{"metadata":"broken"}"#.to_owned();
    let list = |version| [undecodable("x", version), broken.clone(), broken.clone()];
    let stream = peer.serves(5, &list(1)).await;
    informer.wait_synced().await;
    assert_eq!(reports.load(Relaxed), 2, "one object by name, and one error of two that have none");
    stream.event("MODIFIED", &undecodable("x", 6));
    stream.event("MODIFIED", &broken);
    stream.error(410, "Expired", "too old");
    let stream = peer.serves(9, &list(6)).await;
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!((reports.load(Relaxed), informer.status().undecodable), (2, 3));
    stream.event("MODIFIED", &widget_with("x", 10, "uid-x", "", "-1"));
    informer.wait_for_resource_version(&10.into()).await;
    assert_eq!(reports.load(Relaxed), 3, "another error");
    stream.event("MODIFIED", &widget("x", 11));
    stream.event("MODIFIED", &undecodable("x", 12));
    informer.wait_for_resource_version(&12.into()).await;
    assert_eq!(reports.load(Relaxed), 4, "it could be decoded meanwhile");
    assert!(informer.status().reason.unwrap().starts_with("3 objects cannot be decoded, the first: a/x: "));
}

#[tokio::test(start_paused = true)]
async fn is_forgotten_when_it_is_deleted_or_gone_from_a_list() {
    let (mut peer, _factory, informer) = widgets();
    let broken = r#"{"metadata":"broken"}"#.to_owned();
    let stream = peer.serves(5, &[undecodable("x", 1), undecodable("y", 2), broken]).await;
    informer.wait_synced().await;
    stream.event("DELETED", &undecodable("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((informer.undecodable(&key("x")), informer.status().undecodable), (None, 2));
    stream.error(410, "Expired", "too old");
    let _stream = peer.serves(9, &[]).await;
    informer.wait_for_resource_version(&9.into()).await;
    assert!(informer.undecodable_objects().is_empty());
    assert_eq!(informer.status().reason, None);
}

#[tokio::test(start_paused = true)]
async fn holds_up_no_other_object() {
    const OBJECTS: u64 = 5_000;
    let (mut peer, _factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let name = |number: u64| format!("w{number}");
    let objects: Vec<String> = (1..=OBJECTS)
        .map(|number| if number == 2_500 { undecodable(&name(number), number) } else { widget(&name(number), number) })
        .collect();
    let stream = peer.serves(OBJECTS, &objects).await;
    informer.wait_synced().await;
    assert_eq!((informer.len(), notified.take().len()), (4_999, 4_999));
    for number in 1..=OBJECTS {
        let version = OBJECTS + number;
        let change = if number == 2_500 { undecodable(&name(number), version) } else { widget(&name(number), version) };
        stream.event("MODIFIED", &change);
    }
    informer.wait_for_resource_version(&(2 * OBJECTS).into()).await;
    assert_eq!((informer.len(), notified.take().len()), (4_999, 4_999));
    assert_eq!(informer.undecodable_objects().len(), 1);
}

/// An event of 33 MiB, a line that is no event, and an event without an object.
fn send_unreadable_events(stream: &Stream) {
    stream.send(r#"{"type":"ADDED","object":{"metadata":{"name":"long"},"data":""#);
    let mebibyte = vec![b'x'; 1 << 20];
    for _ in 0..33 {
        stream.send_bytes(&mebibyte);
    }
    stream.send("\"}}\n<html>\n{\"type\":\"ADDED\"}\n");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_too_long_or_malformed_holds_up_no_other() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.asked_for("streaming list").await.accept();
    stream.event("ADDED", &widget("x", 1));
    send_unreadable_events(&stream);
    stream.event("ADDED", &widget("y", 2));
    stream.end_of_initial_events(5);
    informer.wait_synced().await;
    assert_eq!((contents(&informer).as_str(), informer.status().undecodable), ("x@1 y@2", 3));
    send_unreadable_events(&stream);
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((contents(&informer).as_str(), informer.status().undecodable), ("x@6 y@2", 6));
    assert_eq!((informer.status().last_error, informer.status().lists), (None, 1));
    assert!(informer.status().reason.unwrap().starts_with("6 objects cannot be decoded"));
}

#[tokio::test(start_paused = true)]
async fn any_number_of_errors_of_objects_without_a_name_are_kept_in_bounds() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    for number in 0..1_000 {
        stream.event("ADDED", &format!(r#"{{"metadata":"{number}{}"}}"#, "x".repeat(10_000)));
    }
    stream.bookmark(6);
    informer.wait_for_resource_version(&6.into()).await;
    let status = informer.status();
    assert_eq!(status.undecodable, 1_000);
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("1000 objects cannot be decoded, the first: ") && reason.len() < 400, "{reason}");
}

#[tokio::test(start_paused = true)]
async fn may_be_one_for_which_an_index_function_panics() {
    fn by_size(informer: &Informer<Widget>) -> kcm_informers::Index<Widget, u32> {
        informer.index("size", |widget: &Widget| {
            assert_ne!(widget.size, 13, "an unlucky size");
            [widget.size]
        })
    }
    let sized = |name: &str, version, size: &str| widget_with(name, version, &format!("uid-{name}"), "", size);
    let (mut peer, _factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let index = by_size(&informer);
    let stream = peer.serves(5, &[sized("bad", 1, "13"), sized("x", 2, "1")]).await;
    informer.wait_synced().await;
    assert_eq!((contents(&informer), notified.take()), ("x@2".to_owned(), vec!["added x@2 (initial)".to_owned()]));
    let error = informer.undecodable(&key("bad")).unwrap().error.clone();
    assert!(error.starts_with("the function of the index \"size\" panicked: "), "{error}");
    // An object of the cache that becomes one, and recovers.
    stream.event("MODIFIED", &sized("x", 6, "13"));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!((informer.len(), index.count(&1), informer.undecodable_objects().len()), (0, 0, 2));
    stream.event("MODIFIED", &sized("x", 7, "1"));
    stream.event("DELETED", &sized("bad", 8, "13"));
    informer.wait_for_resource_version(&8.into()).await;
    assert_eq!((contents(&informer), index.count(&1), informer.undecodable_objects().len()), ("x@7".to_owned(), 1, 0));
    assert_eq!(notified.take(), ["undecodable x@2", "added x@7"]);
    // A new list whose object it refuses, and a new index.
    drop(index);
    stream.event("MODIFIED", &sized("y", 9, "13"));
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(informer.len(), 2);
    let index = by_size(&informer);
    yield_to_informer().await;
    assert_eq!((contents(&informer), informer.last_sync_resource_version()), ("x@7".to_owned(), 9.into()));
    stream.error(410, "Expired", "too old");
    let _stream = peer.serves(20, &[sized("x", 11, "13"), sized("y", 9, "13"), sized("z", 12, "1")]).await;
    informer.wait_for_resource_version(&20.into()).await;
    assert_eq!((contents(&informer), index.count(&1), informer.status().undecodable), ("z@12".to_owned(), 1, 2));
}
