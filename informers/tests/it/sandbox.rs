//! Against an API server in process that misbehaves at random: caches and subscribers end up with what it holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kcm_api::{ObjectKey, PartialObjectMeta, Typed, View};
use kcm_informers::{Change, Factory, FactoryOptions, HandlerOptions, Informer, ListOptions};
use kcm_sandbox_apiserver::{CONFIG_MAPS, Cut, Fault, Sandbox, SandboxOptions, Status, Verb};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Keys and versions: what a cache is compared by.
type Versions = BTreeMap<ObjectKey, String>;

/// Returns a copy of the cache that a subscriber keeps by its notifications.
fn mirror<V: View>(informer: &Informer<V>) -> Arc<Mutex<Versions>> {
    let mirror = Arc::new(Mutex::new(Versions::new()));
    let notified = Arc::clone(&mirror);
    informer.add_event_handler(HandlerOptions::named("mirror"), move |change, _| {
        let version = change.object().meta().resource_version.to_string();
        let mut notified = notified.lock();
        match change {
            Change::Added(_) => assert!(notified.insert(change.key().clone(), version).is_none(), "added twice"),
            Change::Updated { old, .. } => {
                let before = notified.insert(change.key().clone(), version);
                assert_eq!(before, Some(old.meta().resource_version.to_string()), "old is what was notified before");
            }
            Change::Undecodable { .. } => panic!("every object can be decoded"),
            Change::Deleted { .. } => assert!(notified.remove(change.key()).is_some(), "removed what was not there"),
        }
    });
    mirror
}

fn held<V: View>(informer: &Informer<V>) -> Versions {
    let versions = |object: Arc<V>| (object.meta().key.clone(), object.meta().resource_version.to_string());
    informer.list().into_iter().map(versions).collect()
}

fn served(sandbox: &Sandbox) -> Versions {
    let objects = sandbox.list(&CONFIG_MAPS, None);
    let versions = |object: &Value| {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().expect("the server must fill in metadata").to_owned();
        (ObjectKey::namespaced(text("namespace"), text("name")), text("resourceVersion"))
    };
    objects.iter().map(versions).collect()
}

fn misbehave(sandbox: &Sandbox, rng: &mut fastrand::Rng) {
    let faults = sandbox.faults();
    let watches = || Fault::on(Verb::Watch).resource(CONFIG_MAPS).times(1);
    match rng.u64(..9) {
        0 => faults.cut_watches(&CONFIG_MAPS, Cut::Clean),
        1 => faults.cut_watches(&CONFIG_MAPS, Cut::Broken),
        2 => faults.silence_watches(&CONFIG_MAPS),
        3 => faults.cut_next_watch(&CONFIG_MAPS, usize::try_from(rng.u64(..4)).unwrap_or_default(), Cut::Broken),
        4 => {
            sandbox.compact();
            faults.cut_watches(&CONFIG_MAPS, Cut::Broken);
        }
        5 => drop(faults.inject(watches().disconnect())),
        6 => drop(faults.inject(watches().stall())),
        7 => drop(faults.inject(watches().fail(Status::expired("too old")))),
        _more => drop(faults.inject(watches().fail(Status::new(500, "InternalError", "broken")))),
    }
}

fn write(sandbox: &Sandbox, rng: &mut fastrand::Rng) {
    let key = ObjectKey::namespaced("default", format!("c{}", rng.u64(..8)));
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": key.name()},
    });
    // Half of them meet an object that is, or is not, there; the other half is enough.
    match rng.u64(..4) {
        0 | 1 => drop(sandbox.create(&CONFIG_MAPS, object)),
        2 => drop(sandbox.patch(&CONFIG_MAPS, &key, &json!({"data": {"a": rng.u64(..1000).to_string()}}))),
        _more => drop(sandbox.delete_now(&CONFIG_MAPS, &key)),
    }
}

/// A server that does not know `sendInitialEvents` refuses the parameter that comes with it.
pub(crate) fn client_of_an_older_server(sandbox: &Sandbox) -> Client {
    let service = sandbox.service().map_request(|mut request: Request<Body>| {
        let uri = request.uri().to_string().replace("sendInitialEvents=true&", "");
        *request.uri_mut() = uri.parse().expect("a request without one of its parameters must be valid");
        request
    });
    Client::new(service, "default")
}

/// Returns the number of lists of all objects.
async fn survives(seed: u64, has_streaming_lists: bool) -> u64 {
    let sandbox = Sandbox::new(SandboxOptions { seed, watch_window: 20, ..SandboxOptions::default() });
    let client = if has_streaming_lists { sandbox.client() } else { client_of_an_older_server(&sandbox) };
    let factory = Factory::new(FactoryOptions::new(client, seed));
    let metadata = factory.informer_for::<PartialObjectMeta>(CONFIG_MAPS, ListOptions::default());
    let whole = factory.informer_for::<Typed<Value>>(CONFIG_MAPS, ListOptions::default());
    let mirrors = [mirror(&metadata), mirror(&whole)];
    factory.start();
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..200 {
        for _ in 0..rng.u64(..5) {
            write(&sandbox, &mut rng);
        }
        if rng.u64(..5) == 0 {
            misbehave(&sandbox, &mut rng);
        }
        tokio::time::sleep(Duration::from_millis(rng.u64(..20_000))).await;
    }
    // Long enough for a stalled question, a silent watch and the longest back-off after each other.
    tokio::time::sleep(Duration::from_mins(20)).await;
    let expected = served(&sandbox);
    assert_eq!(held(&metadata), expected, "seed {seed}: cache of metadata");
    assert_eq!(held(&whole), expected, "seed {seed}: cache of whole objects");
    for mirror in mirrors {
        assert_eq!(*mirror.lock(), expected, "seed {seed}: subscriber");
    }
    assert!(factory.status().iter().all(|status| status.synced), "seed {seed}: {:#?}", factory.status());
    let pages = sandbox.requests().iter().filter(|request| request.query.contains("limit=")).count();
    assert_eq!(pages > 0, !has_streaming_lists, "seed {seed}: {pages} pages were listed");
    factory.shut_down().await;
    factory.status().iter().map(|status| status.lists).sum()
}

#[tokio::test(start_paused = true)]
async fn ends_up_with_what_a_misbehaving_server_holds() {
    let mut lists = 0;
    for seed in 0..25 {
        lists += survives(seed, true).await;
    }
    assert!(lists > 100, "the server must misbehave enough: everything was listed only {lists} times");
}

#[tokio::test(start_paused = true)]
async fn ends_up_with_what_a_misbehaving_server_without_streaming_lists_holds() {
    let mut lists = 0;
    for seed in 0..25 {
        lists += survives(seed, false).await;
    }
    assert!(lists > 100, "the server must misbehave enough: everything was listed only {lists} times");
}
