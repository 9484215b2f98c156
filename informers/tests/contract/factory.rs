//! What a factory does.

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
    assert!(accepted(1).starts_with("application/json;as=PartialObjectMetadata;"), "{}", accepted(1));
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
            informer.add_event_handler(HandlerOptions { name: "owner", resync_period: None }, move |change, _| {
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
