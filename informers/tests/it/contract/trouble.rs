//! Contract of failures of the server and of the informer.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_by_page() {
    let (mut peer, _factory, informer) = widgets();
    peer.asked_for("streaming list").await.refuse(422, "Invalid", "sendInitialEvents: Forbidden");
    let asked = peer.asked_for("list").await;
    assert_eq!(asked.query("limit").as_deref(), Some("500"));
    asked.page(5, "next", &[widget("x", 1)]);
    peer.asked_for("list from next").await.page(5, "", &[widget("y", 2)]);
    informer.wait_synced().await;
    assert_eq!((contents(&informer).as_str(), informer.last_sync_resource_version()), ("x@1 y@2", 5.into()));
    let stream = peer.asked_for("watch from 5").await.accept();
    stream.event("ADDED", &widget("z", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(informer.status().last_error, None, "a server may be old");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_without_bookmarks_is_replaced_and_does_not_make_the_cache_stale() {
    let (mut peer, _factory, informer) = widgets();
    peer.asked_for("streaming list").await.refuse(422, "Invalid", "sendInitialEvents: Forbidden");
    peer.asked_for("list").await.page(5, "", &[widget("x", 1)]);
    informer.wait_synced().await;
    let mut stream = peer.asked_for("watch from 5").await.accept();
    for is_ended_by_the_server in [false, true, false] {
        if is_ended_by_the_server {
            tokio::time::sleep(seconds(140)).await;
            stream.end();
        }
        let asked = peer.asked_for("watch from 5").await;
        assert!(!informer.status().is_stale(), "the next watch has a moment to begin");
        stream = asked.accept();
        yield_to_informer().await;
        assert_eq!(informer.status().confirmed_ago, Some(Duration::ZERO));
    }
    // The next watch is never accepted.
    let _unanswered = peer.asked_for("watch from 5").await;
    tokio::time::sleep(seconds(20)).await;
    assert!(informer.status().is_stale());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_of_a_server_with_bookmarks_makes_the_cache_stale() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    stream.end();
    let _silent = peer.asked_for("watch from 5").await.accept();
    let _silent_too = peer.asked_for("watch from 5").await.accept();
    tokio::time::sleep(seconds(1)).await;
    assert!(informer.status().is_stale());
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_that_is_refused_in_between_does_not_confirm_the_cache() {
    let (mut peer, _factory, informer) = widgets();
    peer.asked_for("streaming list").await.refuse(422, "Invalid", "sendInitialEvents: Forbidden");
    peer.asked_for("list").await.page(5, "", &[widget("x", 1)]);
    informer.wait_synced().await;
    for _ in 0..8 {
        peer.asked_for("watch from 5").await.accept().end();
    }
    assert!(informer.status().confirmed_ago > Some(seconds(30)), "each watch ended at once");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_fails_twice_is_tried_by_page() {
    let (mut peer, _factory, informer) = widgets();
    peer.asked_for("streaming list").await.accept().error(500, "InternalError", "cannot encode");
    peer.asked_for("streaming list").await.accept().break_off();
    peer.asked_for("list").await.page(5, "", &[widget("x", 1)]);
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "x@1");
    peer.asked_for("watch from 5").await.refuse(410, "Expired", "too old");
    let _page = peer.asked_for("list").await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_is_requested_with_fewer_objects() {
    let (mut peer, _factory, informer) = widgets();
    peer.asked_for("streaming list").await.refuse(422, "Invalid", "sendInitialEvents: Forbidden");
    peer.asked_for("list").await.page(5, "next", &[widget("x", 1)]);
    let asked = peer.asked_for("list from next").await;
    assert_eq!(asked.query("limit").as_deref(), Some("500"));
    let page = asked.accept();
    let mebibyte = vec![b' '; 1 << 20];
    for _ in 0..33 {
        assert!(page.is_open(), "32 MB are read");
        page.send_bytes(&mebibyte);
        yield_to_informer().await;
    }
    assert!(!page.is_open(), "no more than 32 MB are held");
    let asked = peer.asked_for("list from next").await;
    assert_eq!(asked.query("limit").as_deref(), Some("125"));
    asked.page(5, "", &[widget("y", 2)]);
    informer.wait_synced().await;
    assert_eq!(contents(&informer), "x@1 y@2", "what was listed before is kept");
    assert_eq!(informer.status().last_error, None);
}

#[tokio::test(start_paused = true)]
async fn an_event_of_an_unknown_type_is_ignored() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.asked_for("streaming list").await.accept();
    stream.event("ADDED", &widget("x", 1));
    stream.event("FUTURE", &widget("z", 2));
    stream.event("ADDED", &widget("y", 3));
    stream.end_of_initial_events(5);
    informer.wait_synced().await;
    stream.event("FUTURE", &widget("x", 6));
    // A bookmark without a version.
    stream.event("BOOKMARK", "{}");
    stream.event("MODIFIED", &widget("y", 7));
    informer.wait_for_resource_version(&7.into()).await;
    assert_eq!((contents(&informer).as_str(), informer.status().undecodable), ("x@1 y@7", 0));
    assert_eq!((informer.status().last_error, informer.status().lists), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_denied_keeps_its_version() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    stream.end();
    for code in [401, 403, 404].into_iter().cycle().take(12) {
        peer.asked_for("watch from 5").await.refuse(code, "", "for now");
    }
    let stream = peer.asked_for("watch from 5").await.accept();
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(informer.status().lists, 1);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_has_expired_restarts_the_list() {
    let (mut peer, _factory, informer) = widgets();
    peer.asked_for("streaming list").await.refuse(400, "BadRequest", "unknown parameter");
    peer.asked_for("list").await.page(5, "next", &[widget("x", 1)]);
    peer.asked_for("list from next").await.refuse(410, "Expired", "the token is too old");
    peer.asked_for("list").await.page(9, "", &[widget("y", 8)]);
    informer.wait_synced().await;
    assert_eq!((contents(&informer).as_str(), informer.last_sync_resource_version()), ("y@8", 9.into()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_or_breaks_is_resumed() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    stream.event("MODIFIED", &widget("x", 6));
    stream.end();
    let before = Instant::now();
    let stream = peer.asked_for("watch from 6").await.accept();
    assert_eq!(before.elapsed(), Duration::ZERO, "at once");
    stream.bookmark(8);
    stream.send(r#"{"type":"MODI"#);
    stream.break_off();
    let stream = peer.asked_for("watch from 8").await.accept();
    assert_eq!(before.elapsed(), Duration::ZERO, "at once");
    stream.event("MODIFIED", &widget("x", 9));
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(informer.status().lists, 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_gone_leads_to_a_new_list() {
    let (mut peer, _factory, informer) = widgets();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    stream.end();
    let before = Instant::now();
    peer.asked_for("watch from 5").await.refuse(410, "Expired", "too old");
    let _stream = peer.serves(9, &[widget("y", 8)]).await;
    assert_eq!(before.elapsed(), Duration::ZERO, "at once");
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(contents(&informer), "y@8");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_replaced() {
    let (mut peer, _factory, informer) = widgets();
    let silent = peer.serves(5, &[]).await;
    informer.wait_synced().await;
    assert!(peer.is_quiet_for(seconds(149)).await);
    let stream = peer.asked_for("watch from 5").await.accept();
    assert!(!silent.is_open());
    stream.event("ADDED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_is_repeated() {
    let (mut peer, _factory, informer) = widgets();
    let _never_answered = peer.asked_for("streaming list").await;
    assert!(peer.is_quiet_for(seconds(65)).await);
    let _stream = peer.serves(5, &[]).await;
    informer.wait_synced().await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_at_growing_intervals() {
    let (mut peer, _factory, _informer) = widgets();
    let mut waits = Vec::new();
    // Pages are tried in between, in case that only streaming lists fail.
    let questions = ["streaming list", "streaming list", "list", "streaming list", "streaming list", "list"];
    for questions in questions.iter().cycle().take(8).collect::<Vec<_>>().chunks(2) {
        peer.asked_for(questions[0]).await.refuse(500, "InternalError", "broken");
        let before = Instant::now();
        let asked = peer.asked_for(questions[1]).await;
        waits.push(before.elapsed());
        asked.refuse(500, "InternalError", "broken");
    }
    assert!((Duration::from_millis(800)..Duration::from_millis(1_601)).contains(&waits[0]), "{waits:?}");
    assert!(waits.is_sorted(), "{waits:?}");
    assert!(waits[3] > seconds(20), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_served_resets_the_interval() {
    let (mut peer, _factory, _informer) = widgets();
    let mut stream = peer.serves(5, &[]).await;
    for version in 6..20 {
        stream.end();
        peer.asked_for(&format!("watch from {}", version - 1)).await.refuse(500, "InternalError", "broken");
        let before = Instant::now();
        stream = peer.asked().await.accept();
        assert!(before.elapsed() < seconds(2), "the first failure again, not the {version}th");
        stream.bookmark(version);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_informer_leads_to_a_new_list() {
    struct Panics;
    impl kcm_informers::Metrics for Panics {
        fn event(&self, kind: kcm_informers::EventKind) {
            assert_ne!(kind, kcm_informers::EventKind::Modified);
        }
    }
    let (client, mut peer) = peer();
    let mut options = kcm_informers::FactoryOptions::new(client, 7);
    options.metrics = std::sync::Arc::new(|_| std::sync::Arc::new(Panics));
    let factory = kcm_informers::Factory::new(options);
    let informer = factory.informer::<Widget>(ListOptions::default());
    factory.start();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    stream.event("MODIFIED", &widget("x", 6));
    let _stream = peer.serves(9, &[widget("x", 6)]).await;
    informer.wait_for_resource_version(&9.into()).await;
    assert_eq!(contents(&informer), "x@6");
    assert!(informer.status().last_error.unwrap().contains("ended in a panic"));
}
