//! The contract page of the crate, sentence by sentence.

mod cache;
mod disappearance;
mod event_handlers;
mod factory;
mod last_sync_resource_version;
mod multi_namespace;
mod outages;
mod protobuf;
mod support;
mod sync;
mod trouble;
mod undecodable;

use std::time::Duration;

use kcm_api::{KnownView, ObjectKey, PartialObjectMeta, Resource, ResourceVersion, View as _};
use kcm_informers::{
    Change, HandlerOptions, Informer, ListOptions, MetadataInformer, PROBE_GAP, Phase, Reachability, Registrations,
};
use support::*;
use tokio::time::Instant;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A started factory with one informer.
fn started<V: KnownView>() -> (Peer, kcm_informers::Factory, Informer<V>) {
    let (client, peer) = peer();
    let factory = factory(client);
    let informer = factory.informer::<V>(ListOptions::default());
    factory.start();
    (peer, factory, informer)
}

fn widgets() -> (Peer, kcm_informers::Factory, Informer<Widget>) {
    started()
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_any_view_has_object_states_and_covers_its_list_options() {
    let (mut peer, factory, informer) = widgets();
    let _stream = peer.serves(5, &[terminating("x", 3)]).await;
    let caches = factory.caches(informer.resource());
    let [cache] = caches.as_slice() else { panic!("one cache") };
    cache.wait_synced().await;
    let identity = cache.object_state(&key("x")).unwrap();
    assert_eq!((identity.uid, identity.resource_version, identity.terminating), ("uid-x".into(), 3.into(), true));
    assert_eq!(cache.object_state(&key("y")), None);
    let meta = Widget::decode(&widget("y", 9)).unwrap().metadata;
    assert_eq!(cache.covers(&meta), Some(true));
    assert_eq!(cache.last_sync_resource_version(), 5.into());
}

#[test]
fn changes_name_their_object() {
    let object = std::sync::Arc::new(Widget::decode(&widget("x", 1)).unwrap());
    let removed = Change::Deleted { last: object, final_state_known: true };
    assert_eq!(*removed.key(), key("x"));
}

/// The tests here are named after the sentences of the page, and nothing else.
#[test]
fn every_sentence_of_the_page_has_a_test() {
    let page: String = include_str!("../../../src/lib.rs")
        .lines()
        .skip_while(|line| *line != "//! # Contract")
        .skip(1)
        .take_while(|line| !line.starts_with("//! # "))
        .flat_map(|line| [line.trim_start_matches("//!").trim(), " "])
        .collect();
    let page = page.replace("**", "");
    let promised: Vec<String> = page
        .split('*')
        .skip(1)
        .step_by(2)
        .map(|sentence| sentence.replace(',', "").split_whitespace().collect::<Vec<_>>().join("_"))
        .collect();
    let tests = [
        include_str!("cache.rs"),
        include_str!("event_handlers.rs"),
        include_str!("last_sync_resource_version.rs"),
        include_str!("sync.rs"),
        include_str!("trouble.rs"),
        include_str!("undecodable.rs"),
        include_str!("outages.rs"),
        include_str!("disappearance.rs"),
        include_str!("factory.rs"),
        include_str!("multi_namespace.rs"),
    ]
    .concat();
    assert!(promised.len() > 30, "{promised:#?}");
    for sentence in promised {
        assert!(tests.contains(&format!("async fn {sentence}()")), "no test is named {sentence}");
    }
}
