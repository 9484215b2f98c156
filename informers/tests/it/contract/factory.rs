//! Contract of the factory.

use super::*;

#[tokio::test(start_paused = true)]
async fn shares_one_watch_among_users_of_the_same() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let one = factory.informer::<Widget>(ListOptions::default());
    let two = factory.informer_for::<Widget>(one.resource().clone(), ListOptions::default());
    factory.start();
    let _stream = peer.serves(5, &[widget("x", 1)]).await;
    one.wait_synced().await;
    assert_eq!(contents(&two), "x@1");
    assert!(peer.is_quiet_for(seconds(60)).await);
    assert_eq!(factory.status().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn watches_another_view_or_list_options_again_and_logs_that() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let whole = factory.informer::<Widget>(ListOptions::default());
    let _metadata = factory.informer_for::<PartialObjectMeta>(whole.resource().clone(), ListOptions::default());
    let _narrow = factory.informer::<Widget>(ListOptions::namespace("b"));
    factory.start();
    let asked = [peer.asked().await, peer.asked().await, peer.asked().await];
    let accepted = |at: usize| asked[at].headers["accept"].to_str().unwrap();
    assert_eq!(accepted(0), "application/json");
    assert!(
        accepted(1).starts_with("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;"),
        "{}",
        accepted(1)
    );
    assert_eq!(asked[2].uri.path(), "/apis/example.com/v1/namespaces/b/widgets");
    for status in factory.status() {
        assert_eq!(status.also_watched_as.len(), 2, "{:?}", status.also_watched_as);
    }
}

#[tokio::test(start_paused = true)]
async fn starts_once_and_starts_late_informers_at_once() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let _early = factory.informer::<Widget>(ListOptions::default());
    assert!(peer.is_quiet_for(seconds(60)).await, "nothing runs before the start");
    factory.start();
    factory.start();
    let _early = peer.serves(5, &[]).await;
    assert!(peer.is_quiet_for(seconds(60)).await);
    let late = factory.informer::<Widget>(ListOptions::namespace("b"));
    let _late = peer.serves(5, &[]).await;
    late.wait_synced().await;
}

#[tokio::test(start_paused = true)]
async fn shuts_down_every_informer() {
    let (mut peer, factory, informer) = widgets();
    let stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    factory.shut_down().await;
    assert!(!stream.is_open());
    assert_eq!(informer.status().phase, Phase::Stopped);
    let _late = factory.informer::<Widget>(ListOptions::namespace("b"));
    factory.start();
    assert!(peer.is_quiet_for(seconds(600)).await);
}

#[tokio::test(start_paused = true)]
async fn stops_an_informer_when_its_last_user_ends_and_frees_its_memory() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    factory.start();
    let mut users: Vec<(Registrations, Informer<Widget>, Notifications)> = (0..10)
        .map(|_| {
            let registrations = Registrations::new();
            let informer = factory.with_registrations(&registrations).informer::<Widget>(ListOptions::default());
            let notified = add_event_handler(&informer, "user");
            // A handler that owns a handle of its own informer does not keep it alive.
            let own = informer.clone();
            informer.add_event_handler(HandlerOptions::named("owner"), move |change, _| {
                assert!(own.get(change.key()).is_some());
            });
            (registrations, informer, notified)
        })
        .collect();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    for (_, informer, notified) in &users {
        informer.wait_synced().await;
        assert_eq!(notified.take(), ["added x@1 (initial)"]);
    }
    assert!(peer.is_quiet_for(seconds(60)).await, "ten users share one watch");
    let object = std::sync::Arc::downgrade(&users[0].1.get(&key("x")).unwrap());
    while let Some((registrations, informer, notified)) = users.pop() {
        assert!(stream.is_open() && factory.status().len() == 1, "{} users are left", users.len() + 1);
        drop(informer);
        registrations.remove_all();
        assert!(notified.is_unused());
        yield_to_informer().await;
    }
    assert!(!stream.is_open());
    assert!(factory.status().is_empty());
    assert!(object.upgrade().is_none(), "the cache is freed");

    let registrations = Registrations::new();
    let again = factory.with_registrations(&registrations).informer::<Widget>(ListOptions::default());
    let stream = peer.serves(9, &[widget("y", 8)]).await;
    again.wait_synced().await;
    assert_eq!(contents(&again), "y@8");
    drop(registrations);
    yield_to_informer().await;
    assert!(!stream.is_open(), "registrations end when they are dropped");
}

fn app(name: &str, version: u64, app: &str) -> String {
    widget_with(name, version, &format!("uid-{name}"), &format!(r#","labels":{{"app":"{app}"}}"#), "1")
}

fn note_metadata(informer: &MetadataInformer) -> Notifications {
    let notified = Notifications::default();
    let notes = notified.clone();
    informer.add_event_handler(HandlerOptions::named("metadata"), move |change, _| {
        let kind = match change {
            Change::Added(_) => "added",
            Change::Updated { .. } => "updated",
            Change::Undecodable { .. } => "undecodable",
            Change::Deleted { .. } => "removed",
        };
        notes.note(format!("{kind} {}", change.key().name()));
    });
    notified
}

#[tokio::test(start_paused = true)]
async fn serves_metadata_from_a_cache_that_holds_the_objects() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let (of_whole, of_metadata) = (Registrations::new(), Registrations::new());
    let whole = factory.with_registrations(&of_whole).informer::<Widget>(ListOptions::default());
    let handle = factory.with_registrations(&of_metadata);
    let metadata = handle.metadata_informer(Widget::RESOURCE, ListOptions::default());
    let web = ListOptions { label_selector: Some("app=web".parse().unwrap()), ..ListOptions::default() };
    let narrow = handle.metadata_informer(Widget::RESOURCE, web);
    let (all, of_web) = (note_metadata(&metadata), note_metadata(&narrow));
    factory.start();
    let stream = peer.serves(5, &[app("x", 1, "web"), app("y", 2, "db")]).await;
    metadata.cache().wait_synced().await;
    assert!(peer.is_quiet_for(seconds(60)).await, "one watch serves all");
    assert_eq!(factory.status().len(), 1);
    let (object, held) = (metadata.get(&key("x")).unwrap(), whole.get(&key("x")).unwrap());
    assert!(std::ptr::eq(object.metadata(), held.meta()), "nothing is held twice");
    let names = |informer: &MetadataInformer| -> Vec<String> {
        informer.list().iter().map(|object| object.metadata().key.name().to_owned()).collect()
    };
    assert_eq!((names(&metadata), names(&narrow)), (vec!["x".to_owned(), "y".to_owned()], vec!["x".to_owned()]));
    assert!(narrow.get(&key("y")).is_none());
    stream.event("MODIFIED", &app("x", 6, "db"));
    stream.event("MODIFIED", &app("y", 7, "web"));
    stream.event("MODIFIED", &app("y", 8, "web"));
    stream.event("DELETED", &app("x", 9, "db"));
    stream.event("DELETED", &app("y", 10, "web"));
    whole.wait_for_resource_version(&10.into()).await;
    let of_all = ["added x", "added y", "updated x", "updated y", "updated y", "removed x", "removed y"];
    assert_eq!(all.take(), of_all);
    assert_eq!(of_web.take(), ["added x", "removed x", "added y", "updated y", "removed y"]);
    of_whole.remove_all();
    yield_to_informer().await;
    assert!(stream.is_open(), "a user of metadata is one of the informer");
    of_metadata.remove_all();
    yield_to_informer().await;
    assert!(!stream.is_open() && all.is_unused() && of_web.is_unused());
}

#[tokio::test(start_paused = true)]
async fn watches_the_metadata_of_other_kinds_alone() {
    const WATCHED: &[u8] = include_bytes!("../../../fixtures/pods_watch.pb");
    let (client, mut peer) = peer();
    let factory = factory(client);
    let _widgets = factory.informer::<Widget>(ListOptions::namespace("b"));
    let in_protobuf = factory.metadata_informer(kcm_api::views::Pod::RESOURCE, ListOptions::default());
    let in_json = factory.metadata_informer(Widget::RESOURCE, ListOptions::default());
    factory.start();
    let _narrower = peer.serves(5, &[]).await;
    let asked = peer.asked_for("streaming list").await;
    let accept = asked.headers["accept"].to_str().unwrap();
    assert!(accept.starts_with("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;"), "{accept}");
    let stream = asked.accept_protobuf();
    stream.send_bytes(WATCHED);
    in_protobuf.cache().wait_synced().await;
    assert!(in_protobuf.get(&kcm_api::ObjectKey::namespaced("default", "one")).is_some());
    let _stream = peer.serves(5, &[widget("x", 1)]).await;
    in_json.cache().wait_synced().await;
    assert_eq!(in_json.get(&key("x")).unwrap().metadata().resource_version, 1.into());
}
