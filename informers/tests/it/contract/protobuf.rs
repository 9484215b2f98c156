//! Kinds that are read as protobuf, from what an API server of 1.36.3 sent.

use kcm_api::views::Pod;
use kcm_informers::Informer;

use super::*;

/// A streaming list of the pods `one` and `two`, and what came after it: `one` changed, `two` deleted with grace.
const WATCHED: &[u8] = include_bytes!("../../../fixtures/pods_watch.pb");
/// The same two as the only page of a list.
const LISTED: &[u8] = include_bytes!("../../../fixtures/pods_page.pb");
/// A watch that was refused in its first event, since its version is too old.
const EXPIRED: &[u8] = include_bytes!("../../../fixtures/pods_expired.pb");
/// A list that was refused, since its token is too old.
const REFUSED: &[u8] = include_bytes!("../../../fixtures/pods_refused.pb");

fn pods() -> (Peer, kcm_informers::Factory, Informer<Pod>) {
    started()
}

fn names(informer: &Informer<Pod>) -> Vec<String> {
    informer.list().iter().map(|pod| pod.metadata.key.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_protobuf_is_read_whatever_its_chunks() {
    for size in [1, 7, 1000, WATCHED.len()] {
        let (mut peer, _factory, informer) = pods();
        let asked = peer.asked_for("streaming list").await;
        assert_eq!(asked.headers["accept"], "application/vnd.kubernetes.protobuf,application/json");
        let stream = asked.accept_protobuf();
        let notified = Notifications::default();
        let notes = notified.clone();
        informer.add_event_handler(HandlerOptions::named("test"), move |change, _| {
            notes.note(match change {
                Change::Added(pod) => format!("added {}", pod.metadata.key.name()),
                Change::Updated { new, .. } => format!("updated {}", new.metadata.key.name()),
                Change::Undecodable { last } => format!("undecodable {}", last.metadata.key.name()),
                Change::Deleted { last, .. } => format!("removed {}", last.metadata.key.name()),
            });
        });
        for chunk in WATCHED.chunks(size) {
            stream.send_bytes(chunk);
        }
        informer.wait_synced().await;
        yield_to_informer().await;
        while names(&informer).len() == 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            notified.take(),
            ["added one", "added two", "updated one", "updated two", "removed two"],
            "chunks of {size}"
        );
        assert!(stream.is_open() && informer.status().last_error.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn pages_and_error_statuses_are_read_in_either_encoding() {
    let (mut peer, _factory, informer) = pods();
    peer.asked_for("streaming list").await.refuse(422, "Invalid", "sendInitialEvents: Forbidden");
    peer.asked_for("list").await.refuse_in_protobuf(410, REFUSED);
    peer.asked_for("list").await.accept_protobuf().send_bytes(LISTED);
    informer.wait_synced().await;
    assert_eq!(names(&informer), ["default/one", "default/two"]);
    let watch = peer.asked().await;
    assert_eq!(watch.question(), format!("watch from {}", informer.last_sync_resource_version()));
    watch.accept_protobuf().send_bytes(EXPIRED);
    // A version that is gone, and not a stream that cannot be read.
    peer.asked_for("list").await.page(1_000_000, "", &[]);
    informer.wait_for_resource_version(&1_000_000.into()).await;
    assert!(names(&informer).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_only_json_is_read_as_well() {
    let (mut peer, _factory, informer) = pods();
    let _stream = peer.serves(5, &[widget("x", 1)]).await;
    informer.wait_synced().await;
    assert_eq!(names(&informer), ["a/x"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_no_event_is_counted_and_holds_up_no_other() {
    let (mut peer, _factory, informer) = pods();
    let stream = peer.asked_for("streaming list").await.accept_protobuf();
    // No message of protobuf, a type that is unknown, and one byte more than 32 MiB.
    stream.send_bytes(&[0, 0, 0, 2, 0xff, 0xff]);
    stream.send_bytes(&[&[0, 0, 0, 15, 10, 6][..], b"FUTURE", &[18, 5, 10, 3], b"{ }"].concat());
    stream.send_bytes(&[2, 0, 0, 1]);
    stream.send_bytes(&vec![0; (32 << 20) + 1]);
    stream.send_bytes(WATCHED);
    informer.wait_synced().await;
    yield_to_informer().await;
    assert_eq!(names(&informer), ["default/one"]);
    assert_eq!((informer.status().undecodable, informer.status().last_error), (2, None));
    let reason = informer.status().reason.unwrap();
    assert!(reason.starts_with("2 objects cannot be decoded"), "{reason}");
}
