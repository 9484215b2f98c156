//! Proofs that a cache is current, against an API server in process.

use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta};
use kcm_informers::{
    CurrentCache, Evidence, Factory, FactoryOptions, HandedOver, Informer, ListOptions, LookAhead, Moments,
    Registrations,
};
use kcm_sandbox_apiserver::{CONFIG_MAPS, PODS, Sandbox};
use kube::Client;
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::sandbox::client_of_an_older_server;

struct Setup {
    sandbox: Sandbox,
    factory: Factory,
    moments: Moments,
    maps: Informer<PartialObjectMeta>,
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn create(sandbox: &Sandbox, name: &str) {
    let object = json!({ "metadata": { "namespace": "default", "name": name } });
    sandbox.create(&CONFIG_MAPS, object).expect("the object is valid");
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// A cache of config maps that has synced, and a change of another kind since.
async fn synced_with(list_options: ListOptions, client: impl FnOnce(&Sandbox) -> Client) -> Setup {
    let sandbox = Sandbox::default();
    create(&sandbox, "first");
    let moments = Moments::default();
    let options = FactoryOptions { moments: moments.clone(), ..FactoryOptions::new(client(&sandbox), 1) };
    let factory = Factory::new(options);
    let maps = factory.informer_for::<PartialObjectMeta>(CONFIG_MAPS, list_options);
    factory.start();
    maps.wait_synced().await;
    // The watch is open.
    tokio::time::sleep(millis(1)).await;
    sandbox.create_namespace("another").expect("the namespace is new");
    sandbox.clear_requests();
    Setup { sandbox, factory, moments, maps }
}

async fn synced() -> Setup {
    synced_with(ListOptions::default(), Sandbox::client).await
}

impl Setup {
    /// Proves that the cache is current from now on; returns the evidence, and how long the proof took.
    async fn prove(&self, handed_over: HandedOver) -> (Evidence, Duration) {
        self.prove_after(LookAhead::default(), handed_over).await
    }

    async fn prove_after(&self, ahead: LookAhead, handed_over: HandedOver) -> (Evidence, Duration) {
        let began = Instant::now();
        let since = self.moments.next();
        let proofs = self.factory.prove_current_after(ahead, since, |_| handed_over.clone()).await;
        let [CurrentCache { evidence, took, .. }] = &proofs[..] else { panic!("one cache: {proofs:?}") };
        assert_eq!(*took, began.elapsed());
        (*evidence, *took)
    }

    /// Number of requests that list all objects.
    fn lists(&self) -> usize {
        let requests = self.sandbox.requests();
        let of_all = requests.iter().filter(|request| !request.query.contains("metadata.name"));
        of_all.filter(|it| it.query.contains("sendInitialEvents") || !it.query.contains("watch=1")).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_nothing_was_written_to_is_proven_within_two_seconds_without_a_list() {
    let setup = synced().await;
    let (evidence, took) = setup.prove(HandedOver::Nothing).await;
    assert_eq!(evidence, Evidence::Watched);
    assert!(took <= millis(2_000), "{took:?}");
    assert_eq!((setup.lists(), setup.sandbox.requests().len()), (0, 2), "two watches and no list");
    tokio::time::sleep(millis(5_000)).await;
    assert_eq!(setup.sandbox.open_watches(&CONFIG_MAPS), 1, "they have ended");
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_current_only_when_it_shows_what_was_written_before() {
    for lag in [0, 100, 700, 1_500, 2_500, 4_500] {
        for handed_over in [HandedOver::Nothing, HandedOver::Version("0".into())] {
            let setup = synced().await;
            setup.sandbox.faults().delay_events(&CONFIG_MAPS, millis(lag));
            create(&setup.sandbox, "second");
            setup.sandbox.create_namespace("a").expect("the namespace is new");
            let (evidence, took) = setup.prove(handed_over).await;
            assert!(setup.maps.get(&key("second")).is_some(), "{evidence:?} after {took:?} with a lag of {lag} ms");
            assert_eq!((evidence, setup.lists()), (Evidence::Watched, 0), "with a lag of {lag} ms");
        }
    }
}

/// Looks ahead for so many milliseconds.
async fn look_ahead(setup: &Setup, early: u64) -> LookAhead {
    let mut ahead = setup.factory.look_ahead();
    drop(timeout(millis(early), ahead.run()).await);
    ahead
}

#[tokio::test(start_paused = true)]
async fn watches_that_were_opened_before_the_takeover_prove_a_cache_within_half_a_second() {
    for early in (600..=1_700).step_by(50) {
        let setup = synced().await;
        let ahead = look_ahead(&setup, early).await;
        let (evidence, took) = setup.prove_after(ahead, HandedOver::Nothing).await;
        assert_eq!((evidence, setup.lists()), (Evidence::Watched, 0));
        assert!(took <= millis(500), "it took {took:?} after {early} ms");
        assert!(setup.sandbox.requests().len() <= 5, "four watches and the read of the version");
        tokio::time::sleep(millis(5_000)).await;
        assert_eq!(setup.sandbox.open_watches(&CONFIG_MAPS), 1, "they have ended");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_was_looked_ahead_of_shows_what_was_written_just_before_the_takeover() {
    for early in [0, 300, 600, 1_000, 1_400, 4_000, 10_000] {
        for lag in [0, 400, 1_300] {
            let setup = synced().await;
            setup.sandbox.faults().delay_events(&CONFIG_MAPS, millis(lag));
            create(&setup.sandbox, "second");
            let ahead = look_ahead(&setup, early).await;
            create(&setup.sandbox, "third");
            let (evidence, took) = setup.prove_after(ahead, HandedOver::Nothing).await;
            let shown = ["second", "third"].map(|name| setup.maps.get(&key(name)).is_some());
            assert_eq!(shown, [true, true], "{evidence:?} after {took:?} with a lag of {lag} ms, {early} ms ahead");
            assert_eq!((evidence, setup.lists()), (Evidence::Watched, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_handed_over_is_waited_for_without_a_request() {
    let setup = synced().await;
    setup.sandbox.faults().delay_events(&CONFIG_MAPS, millis(200));
    create(&setup.sandbox, "second");
    let version = HandedOver::Version(setup.sandbox.version().into());
    assert_eq!(setup.prove(version.clone()).await, (Evidence::Reached, millis(200)));
    assert_eq!(setup.prove(version).await, (Evidence::Reached, millis(0)));
    assert_eq!(setup.sandbox.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_no_event_reaches_costs_a_second_watch() {
    let setup = synced().await;
    let of_list = HandedOver::Version(setup.sandbox.version().into());
    let (evidence, took) = setup.prove(of_list).await;
    assert_eq!(evidence, Evidence::Watched);
    assert!(took <= millis(2_250), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cache_whose_watch_is_stuck_is_listed_again_after_five_seconds() {
    let setup = synced().await;
    setup.sandbox.faults().silence_watches(&CONFIG_MAPS);
    create(&setup.sandbox, "second");
    let (evidence, took) = setup.prove(HandedOver::Nothing).await;
    assert_eq!((evidence, took), (Evidence::Relisted, millis(5_000)));
    assert!(setup.maps.get(&key("second")).is_some());
    assert_eq!(setup.lists(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cache_whose_version_has_expired_is_listed_again_at_once() {
    let setup = synced().await;
    setup.sandbox.faults().silence_watches(&CONFIG_MAPS);
    create(&setup.sandbox, "second");
    setup.sandbox.compact();
    let (evidence, took) = setup.prove(HandedOver::Nothing).await;
    assert_eq!(evidence, Evidence::Relisted);
    assert!(took < millis(1_000), "{took:?}");
    assert!(setup.maps.get(&key("second")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_list_after_the_moment_is_a_proof() {
    let sandbox = Sandbox::default();
    let moments = Moments::default();
    let options = FactoryOptions { moments: moments.clone(), ..FactoryOptions::new(sandbox.client(), 1) };
    let factory = Factory::new(options);
    let _maps = factory.informer_for::<PartialObjectMeta>(CONFIG_MAPS, ListOptions::default());
    let since = moments.next();
    factory.start();
    let proofs = factory.prove_current(since, |_| HandedOver::Nothing).await;
    assert_eq!(proofs.iter().map(|proof| proof.evidence).collect::<Vec<_>>(), [Evidence::Listed]);
    assert_eq!(sandbox.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_asked_for_a_list_of_nothing() {
    let setup = synced_with(ListOptions::default(), client_of_an_older_server).await;
    let (evidence, took) = setup.prove(HandedOver::Nothing).await;
    assert_eq!(evidence, Evidence::Watched);
    assert!(took <= millis(2_000), "{took:?}");
    assert_eq!(setup.lists(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cache_with_list_options_is_proven_by_a_watch_with_the_same() {
    let list_options = ListOptions { namespace: Some("default".to_owned()), ..ListOptions::default() };
    let setup = synced_with(list_options, Sandbox::client).await;
    let other = json!({ "metadata": { "namespace": "another", "name": "m" } });
    setup.sandbox.create(&CONFIG_MAPS, other).expect("the object is valid");
    assert_eq!(setup.prove(HandedOver::Nothing).await.0, Evidence::Watched);
    let requests = setup.sandbox.requests();
    assert!(requests.iter().all(|request| request.path == "/api/v1/namespaces/default/configmaps"), "{requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_stops_is_not_waited_for() {
    let Setup { sandbox, factory, moments, maps: _maps } = synced().await;
    let registrations = Registrations::new();
    let handle = factory.with_registrations(&registrations);
    let pods = handle.informer_for::<PartialObjectMeta>(PODS, ListOptions::default());
    pods.wait_synced().await;
    sandbox.faults().hold_watches(&PODS);
    let since = moments.next();
    let stopping = async {
        tokio::time::sleep(millis(3_000)).await;
        registrations.remove_all();
    };
    let (proofs, ()) = tokio::join!(factory.prove_current(since, |_| HandedOver::Nothing), stopping);
    assert_eq!(proofs.iter().map(|proof| &*proof.resource.plural).collect::<Vec<_>>(), ["configmaps"]);
}
