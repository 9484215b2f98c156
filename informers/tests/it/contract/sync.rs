//! Contract of the sync of an informer.

use super::*;

#[tokio::test(start_paused = true)]
async fn does_not_wait_for_objects_that_cannot_be_decoded() {
    let (mut peer, _factory, informer) = widgets();
    let notified = add_event_handler(&informer, "test");
    let _stream = peer.serves(5, &[undecodable("x", 1), r#"{"metadata":{}}"#.to_owned(), widget("y", 2)]).await;
    informer.wait_synced().await;
    assert_eq!(notified.take(), ["added y@2 (initial)"]);
    assert_eq!(informer.last_sync_resource_version(), 5.into());
    let status = informer.status();
    assert_eq!((status.synced, status.undecodable), (true, 2));
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("2 objects cannot be decoded, the first: a/x: "), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn reports_why_it_is_missing_and_is_tried_again() {
    let (mut peer, factory, informer) = widgets();
    let reason = || factory.status()[0].reason.clone().unwrap();
    assert_eq!(reason(), "it has not been started");
    let asked = peer.asked_for("streaming list").await;
    assert_eq!(reason(), "the first list has not been completed");
    asked.refuse(403, "Forbidden", "user may not watch widgets");
    yield_to_informer().await;
    assert_eq!(
        reason(),
        "streaming list of widgets.example.com was refused with 403 Forbidden: user may not watch widgets; \
         grant the user list and watch of widgets.example.com"
    );
    assert_eq!(factory.status()[0].phase, Phase::BackingOff);
    drop(peer.asked_for("streaming list").await);
    yield_to_informer().await;
    let text = reason();
    assert!(text.starts_with("streaming list of widgets.example.com got no response"), "{text}");
    assert!(text.contains("connection reset"), "{text}");
    let _stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    let status = &factory.status()[0];
    assert_eq!((status.phase, status.synced, &status.reason), (Phase::Watching, true, &None));
    assert!(status.last_error.is_some(), "the last failure is kept");
}

#[tokio::test(start_paused = true)]
async fn of_one_kind_does_not_hold_up_another() {
    let (client, mut peer) = peer();
    let factory = factory(client);
    let held_up = factory.informer_for::<PartialObjectMeta>(
        Resource::namespaced("example.com", "v1", "others", "Other"),
        ListOptions::default(),
    );
    let informer = factory.informer::<Widget>(ListOptions::default());
    factory.start();
    let _never_answered = peer.asked().await;
    let _stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    assert!(!held_up.has_synced());
}

#[tokio::test(start_paused = true)]
async fn stays_through_later_failures() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    stream.error(410, "Expired", "too old");
    peer.asked_for("streaming list").await.refuse(500, "InternalError", "broken");
    yield_to_informer().await;
    assert!(informer.has_synced());
    assert_eq!(contents(&informer), "x@1", "the cache stays until a new list is complete");
    assert!(informer.status().reason.unwrap().ends_with("500 InternalError: broken"));
}
