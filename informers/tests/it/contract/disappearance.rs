//! Contract of a resource that disappears.

use tokio::task::JoinSet;

use super::*;

/// An informer whose cache holds `x@1` and `y@2`, and what its handler has noted.
async fn synced() -> (Peer, kcm_informers::Factory, Informer<Widget>, Notifications, Stream) {
    let (mut peer, factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let stream = peer.serves(5, &[widget("x", 1), widget("y", 2)]).await;
    informer.wait_synced().await;
    notified.take();
    (peer, factory, informer, notified, stream)
}

async fn disappear(peer: &mut Peer, factory: &kcm_informers::Factory, stream: Stream) {
    factory.apply_discovery(|_| false);
    stream.end();
    peer.asked_for("watch from 5").await.refuse(404, "NotFound", "the server could not find the requested resource");
    yield_to_informer().await;
}

#[tokio::test(start_paused = true)]
async fn empties_its_cache_and_notifies_of_deletions() {
    let (mut peer, factory, informer, notified, stream) = synced().await;
    let hooked = Notifications::default();
    let noted = hooked.clone();
    let _hook = informer.cache().on_progress(Box::new(move |progress| {
        noted.note(format!("{:?} at {:?}", progress.ended, progress.resource_version.to_string()));
    }));
    disappear(&mut peer, &factory, stream).await;
    assert_eq!(notified.take(), ["removed perhaps x@1", "removed perhaps y@2"]);
    assert_eq!(hooked.take(), [r#"Some(Uid(uid-x)) at """#, r#"Some(Uid(uid-y)) at """#]);
    assert!(informer.is_empty() && !informer.has_synced() && informer.last_sync_resource_version().is_unset());
    let status = informer.status();
    assert_eq!(status.phase, Phase::NotServed);
    assert!(status.reason.unwrap().starts_with("the API server does not serve the resource"));
}

#[tokio::test(start_paused = true)]
async fn is_requested_no_more_until_it_appears_and_then_is_listed_as_if_for_the_first_time() {
    let (mut peer, factory, informer, notified, stream) = synced().await;
    disappear(&mut peer, &factory, stream).await;
    notified.take();
    assert!(peer.is_quiet_for(Duration::from_hours(1)).await);
    factory.apply_discovery(|resource| resource == informer.resource());
    let before = Instant::now();
    let stream = peer.serves(3, &[widget("x", 3)]).await;
    assert_eq!(before.elapsed(), Duration::ZERO, "at once");
    informer.wait_synced().await;
    assert_eq!(notified.take(), ["added x@3 (initial)"]);
    assert_eq!((informer.status().phase, informer.status().reason), (Phase::Watching, None));
    stream.event("MODIFIED", &widget("x", 4));
    informer.wait_for_resource_version(&4.into()).await;
    assert_eq!(contents(&informer), "x@4");
}

#[tokio::test(start_paused = true)]
async fn does_so_only_if_both_lists_and_discovery_lack_it() {
    let (mut peer, factory, informer, notified, stream) = synced().await;
    factory.apply_discovery(|_| false);
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(contents(&informer), "x@6 y@2", "a watch goes on whatever discovery says");
    factory.apply_discovery(|_| true);
    stream.end();
    for _ in 0..3 {
        peer.asked().await.refuse(404, "NotFound", "the server could not find the requested resource");
        yield_to_informer().await;
        assert_eq!((contents(&informer).as_str(), informer.has_synced()), ("x@6 y@2", true));
    }
    assert_eq!(notified.take(), ["updated x@1 to x@6"]);
    factory.apply_discovery(|_| false);
    yield_to_informer().await;
    assert!(informer.is_empty(), "discovery may notice later than the list");
}

#[tokio::test(start_paused = true)]
async fn is_requested_after_an_outage_if_it_appears_during_the_outage() {
    let (client, mut peer) = peer();
    let (factory, connection, monitoring) = monitored(&client);
    let mut tasks = JoinSet::new();
    tasks.spawn(monitoring);
    let informer = factory.informer::<Widget>(ListOptions::default());
    factory.start();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    disappear(&mut peer, &factory, stream).await;
    assert!(informer.is_empty());
    connection.suspect(&"a write failed");
    drop(peer.asked_for("probe").await);
    connection.lost().await;
    factory.apply_discovery(|_| true);
    let end = Instant::now() + seconds(60);
    while let Ok(asked) = tokio::time::timeout_at(end, peer.asked()).await {
        assert_eq!(asked.question(), "probe", "nothing else is sent during an outage");
    }
    peer.asked_for("probe").await.accept().send("ok");
    let _stream = peer.serves(9, &[widget("x", 8)]).await;
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "x@8");
}
