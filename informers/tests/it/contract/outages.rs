//! Outages: of the API server, and of what is behind it.

use tokio::task::JoinSet;

use super::*;

/// An informer over a monitored connection that watches from version 5.
struct Watching {
    peer: Peer,
    informer: Informer<Widget>,
    connection: kcm_informers::Connection,
    stream: Stream,
    _running: (kcm_informers::Factory, JoinSet<()>),
}

async fn watching() -> Watching {
    let (client, mut peer) = peer();
    let (factory, connection, monitoring) = monitored(&client);
    let mut tasks = JoinSet::new();
    tasks.spawn(monitoring);
    let informer = factory.informer::<Widget>(ListOptions::default());
    factory.start();
    let stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    Watching { peer, informer, connection, stream, _running: (factory, tasks) }
}

/// Fails all requests, which must be probes, for `outage`, and returns how many there were.
async fn probes_during(peer: &mut Peer, outage: Duration) -> u64 {
    let end = Instant::now() + outage;
    let mut probes = 0;
    while let Ok(asked) = tokio::time::timeout_at(end, peer.asked()).await {
        assert_eq!(asked.question(), "probe");
        probes += 1;
    }
    probes
}

#[tokio::test(start_paused = true)]
async fn nothing_is_requested_while_the_server_is_unreachable() {
    let Watching { mut peer, informer, connection, stream, _running } = watching().await;
    stream.break_off();
    drop(peer.asked_for("watch from 5").await);
    let probes = probes_during(&mut peer, seconds(600)).await;
    assert!((600..=1201).contains(&probes), "{probes} in 600 s");
    let status = connection.status();
    assert_eq!((status.reachability, status.outages), (Reachability::Unreachable, 1));
    assert!(status.cause.is_some_and(|cause| cause.contains("connection reset")));
    assert_eq!(informer.status().phase, Phase::BackingOff);
    assert_eq!(contents(&informer), "x@1", "the cache stays");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_whatever_length_is_over_for_all_kinds_within_two_seconds() {
    let Watching { mut peer, informer, connection, mut stream, _running } = watching().await;
    for (version, outage) in (6..).zip([1, 60, 3600, 1, 1, 1].map(seconds)) {
        stream.break_off();
        drop(peer.asked().await);
        probes_during(&mut peer, outage).await;
        let back = Instant::now();
        peer.asked_for("probe").await.accept().send("ok");
        let asked = peer.asked_for(&format!("watch from {}", version - 1)).await;
        stream = asked.accept();
        stream.event("MODIFIED", &widget("x", version));
        informer.wait_for_resource_version(&version.into()).await;
        assert!(back.elapsed() <= PROBE_GAP + Duration::from_millis(500), "{:?} after {outage:?}", back.elapsed());
        assert_eq!(connection.status().reachability, Reachability::Reachable);
    }
    assert_eq!(informer.status().lists, 1, "the version was there all the time");
    stream.break_off();
    drop(peer.asked().await);
    probes_during(&mut peer, seconds(3600)).await;
    let back = Instant::now();
    peer.asked_for("probe").await.accept().send("ok");
    peer.asked_for("watch from 11").await.refuse(410, "Expired", "too old");
    let _stream = peer.serves(90, &[widget("x", 80)]).await;
    informer.wait_for_resource_version(&90.into()).await;
    assert!(back.elapsed() <= seconds(2), "{:?}", back.elapsed());
    assert_eq!(informer.status().lists, 2);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_storage_is_one_of_the_connection() {
    let Watching { mut peer, informer, connection, stream, _running } = watching().await;
    stream.end();
    peer.asked_for("watch from 5").await.refuse(500, "", "etcdserver: request timed out");
    let unready = "[+]ping ok\n[-]etcd failed: reason withheld\n";
    for _ in 0..100 {
        peer.asked_for("probe").await.refuse_with(500, unready);
    }
    assert_eq!(connection.status().cause.as_deref(), Some("the API server is not ready: its check of etcd fails"),);
    peer.asked_for("probe").await.accept().send("ok");
    let back = Instant::now();
    let stream = peer.asked_for("watch from 5").await.accept();
    assert!(back.elapsed() <= Duration::from_millis(500), "{:?}", back.elapsed());
    stream.event("MODIFIED", &widget("x", 6));
    informer.wait_for_resource_version(&6.into()).await;
    assert_eq!(informer.status().lists, 1);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_alone_is_unavailable_is_no_outage_of_the_connection() {
    let Watching { mut peer, connection, stream, informer: _, _running } = watching().await;
    stream.end();
    for _ in 0..20 {
        peer.asked_for("watch from 5").await.refuse(503, "ServiceUnavailable", "service unavailable");
        peer.asked_for("probe").await.accept().send("ok");
        yield_to_informer().await;
        assert_eq!(connection.status().reachability, Reachability::Reachable);
    }
    assert_eq!(connection.outages(), 0);
}

#[tokio::test(start_paused = true)]
async fn storage_that_has_gone_back_leads_to_a_new_list() {
    let Watching { mut peer, informer, connection: _connection, stream, _running } = watching().await;
    let notified = add_event_handler(&informer, "test");
    notified.take();
    stream.bookmark(90);
    informer.wait_for_resource_version(&90.into()).await;
    // After an outage the storage is at the same revision, or further.
    let mut stream = stream;
    for revision in [90, 95] {
        peer.revision = revision;
        stream.break_off();
        drop(peer.asked_for("watch from 90").await);
        peer.asked_for("probe").await.accept().send("ok");
        stream = peer.asked_for("watch from 90").await.accept();
        assert!(peer.is_silent_for(seconds(60)).await && stream.is_open());
        stream.bookmark(90);
    }
    // A restore from a backup: the watch is accepted and silent.
    peer.revision = 40;
    stream.break_off();
    drop(peer.asked_for("watch from 90").await);
    drop(peer.asked_for("probe").await);
    let back = Instant::now();
    peer.asked_for("probe").await.accept().send("ok");
    let mut silent = peer.asked().await;
    if silent.question() == "watch from 90" {
        let _silent = silent.accept();
        silent = peer.asked().await;
    }
    assert_eq!(silent.question(), "streaming list");
    let stream = silent.accept();
    stream.event("ADDED", &widget("y", 30));
    stream.end_of_initial_events(40);
    informer.wait_for_resource_version(&40.into()).await;
    yield_to_informer().await;
    assert!(back.elapsed() < seconds(2), "{:?}", back.elapsed());
    assert_eq!(contents(&informer), "y@30");
    assert_eq!(notified.take(), ["removed perhaps x@1", "added y@30"]);
    stream.event("MODIFIED", &widget("y", 41));
    informer.wait_for_resource_version(&41.into()).await;
}

#[tokio::test(start_paused = true)]
async fn a_suspicion_that_storage_has_gone_back_is_checked_once_in_ten_seconds() {
    let Watching { mut peer, informer, connection: _connection, stream, _running } = watching().await;
    stream.bookmark(90);
    informer.wait_for_resource_version(&90.into()).await;
    peer.revision = 90;
    for _ in 0..100 {
        informer.cache().suspect_rollback();
        assert!(peer.is_silent_for(Duration::from_millis(300)).await);
    }
    assert!(peer.checks <= 4, "{} checks in 30 s", peer.checks);
    assert!(stream.is_open());
    peer.revision = 40;
    informer.cache().suspect_rollback();
    let _list = peer.asked_for("streaming list").await;
    assert!(!stream.is_open());
}
