//! Informers under a manager.

use std::sync::Arc;

use kcm_api::views::Pod;
use kcm_api::{DecodeError, Meta, ObjectKey, PartialObjectMeta, View};
use kcm_framework::client::{Patch, Payload};
use kcm_framework::{Loops, Reconcile, ReconcileError, Session, Source, async_trait};
use kcm_informers::{Informer, ListOptions, Lookup};
use kcm_sandbox_apiserver::{PODS, Sandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::guarantees::support::{PARTS, SETS, Setup, Started, descriptor, key, part, sandbox, set, settle, until};

#[tokio::test(start_paused = true)]
async fn the_cache_of_a_resource_that_disappears_is_emptied_and_filled_when_it_returns() {
    let sandbox = sandbox();
    sandbox.create(&PARTS, part("old", "a")).unwrap();
    let kept = Arc::new(Mutex::new(None::<Informer<PartialObjectMeta>>));
    let keep = Arc::clone(&kept);
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let parts = context.informers().informer_for(PARTS, ListOptions::default());
            *keep.lock() = Some(parts);
            async { Ok(Loops::new()) }
        })
        .start();
    let parts = || kept.lock().clone();
    until("the cache has synced", || parts().is_some_and(|parts| parts.has_synced() && parts.len() == 1)).await;
    let parts = parts().unwrap();
    sandbox.unregister(&PARTS);
    until("the cache is emptied", || parts.is_empty() && !parts.has_synced()).await;
    sandbox.register(PARTS);
    sandbox.create(&PARTS, part("new", "a")).unwrap();
    until("the cache is filled", || parts.has_synced()).await;
    assert_eq!(parts.list()[0].metadata.key.name(), "new");
    assert_eq!(sandbox.open_watches(&PARTS), 1);
}

/// An object whose size must be a number, if it has one.
#[derive(serde::Deserialize)]
struct Sized {
    metadata: Meta,
    #[serde(default, rename = "size")]
    _size: u32,
}

impl View for Sized {
    fn decode(json: &str) -> Result<Self, DecodeError> {
        Ok(serde_json::from_str(json)?)
    }

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Notes each key, and makes the part that an annotation of the set names undecodable.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Noting {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[async_trait]
impl Reconcile for Noting {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        self.0.lock().push(key.name().to_owned());
        if key.name() == "spoils" {
            let patch = Patch::Merge(Payload::json(&json!({ "size": "big" })));
            session.of(&PARTS).patch(&crate::guarantees::support::key("p"), patch).await?;
        }
        Ok(())
    }
}

/// A manager with a loop over sets, which own parts.
async fn sets_and_parts(sandbox: &Sandbox) -> (Started, Noting) {
    let noting = Noting::default();
    let reconciler = noting.clone();
    let manager = Setup::on(sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let mut sets = context.control_loop("sets");
            sets.primary_for::<Sized>(Source::of(SETS));
            sets.owns_for::<Sized>(Source::of(PARTS));
            let sets = sets.reconcile(reconciler.clone());
            async move { Ok(Loops::new().with(sets)) }
        })
        .start();
    settle().await;
    (manager, noting)
}

fn sized(mut object: Value, size: &Value) -> Value {
    object["size"] = size.clone();
    object
}

fn owned(name: &str, owner: &Value, size: &Value) -> Value {
    let mut part = sized(part(name, "unused"), size);
    let metadata = &owner["metadata"];
    part["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Set", "name": metadata["name"], "uid": metadata["uid"], "controller": true,
    }]);
    part
}

#[tokio::test(start_paused = true)]
async fn ten_controllers_that_read_pods_share_one_cache() {
    const CONTROLLERS: [&str; 10] = [
        "a-controller",
        "b-controller",
        "c-controller",
        "d-controller",
        "e-controller",
        "f-controller",
        "g-controller",
        "h-controller",
        "i-controller",
        "j-controller",
    ];
    let sandbox = sandbox();
    let noting = Noting::default();
    let setup = CONTROLLERS.into_iter().fold(Setup::on(&sandbox), |setup, name| {
        let reconciler = noting.clone();
        setup.controller(descriptor(name), move |context| {
            let mut pods = context.control_loop(name);
            pods.primary::<Pod>();
            let pods = pods.reconcile(reconciler.clone());
            async move { Ok(Loops::new().with(pods)) }
        })
    });
    let _manager = setup.start();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "default" },
        "spec": { "containers": [{ "name": "main", "image": "image" }] },
    });
    sandbox.create(&PODS, pod).unwrap();
    settle().await;
    assert_eq!(noting.take(), ["p"; 10]);
    assert_eq!(sandbox.open_watches(&PODS), 1);
    let requests = sandbox.requests();
    assert_eq!(requests.iter().filter(|request| request.path == "/api/v1/pods").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_object_cannot_be_decoded_is_not_reconciled_until_it_can_be() {
    let sandbox = sandbox();
    sandbox.create(&SETS, sized(set("bad", 0), &json!("big"))).unwrap();
    sandbox.create(&SETS, set("good", 0)).unwrap();
    let (manager, noting) = sets_and_parts(&sandbox).await;
    let held = || {
        let status = manager.handle.controllers().into_iter().flat_map(|controller| controller.loops);
        status.map(|one| one.held.undecodable).sum::<usize>()
    };
    assert_eq!((noting.take(), held()), (vec!["good".to_owned()], 0), "nothing has enqueued the other");
    sandbox.patch(&SETS, &key("good"), &json!({ "size": "big" })).unwrap();
    settle().await;
    assert_eq!(held(), 1, "operators see it");
    assert_eq!(noting.take(), [""; 0], "an object that leaves the cache so is not reconciled as deleted");
    sandbox.patch(&SETS, &key("bad"), &json!({ "size": 1 })).unwrap();
    settle().await;
    assert_eq!(noting.take(), ["bad"]);
    sandbox.delete(&SETS, &key("good")).unwrap();
    settle().await;
    assert_eq!((noting.take(), held()), (vec!["good".to_owned()], 0), "one that is deleted meanwhile is");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_controls_an_object_that_cannot_be_decoded_is_not_reconciled_until_it_can_be() {
    let sandbox = sandbox();
    let bad = sandbox.create(&SETS, set("bad", 0)).unwrap();
    let good = sandbox.create(&SETS, set("good", 0)).unwrap();
    sandbox.create(&PARTS, owned("p", &bad, &json!("big"))).unwrap();
    sandbox.create(&PARTS, owned("q", &good, &json!(1))).unwrap();
    let (_manager, noting) = sets_and_parts(&sandbox).await;
    assert_eq!(noting.take(), ["good"]);
    sandbox.patch(&SETS, &key("bad"), &json!({ "size": 2 })).unwrap();
    settle().await;
    assert_eq!(noting.take(), [""; 0]);
    sandbox.patch(&PARTS, &key("p"), &json!({ "size": 2 })).unwrap();
    settle().await;
    assert_eq!(noting.take(), ["bad"]);
    sandbox.patch(&PARTS, &key("p"), &json!({ "size": "big" })).unwrap();
    settle().await;
    assert_eq!(noting.take(), [""; 0]);
    sandbox.delete(&PARTS, &key("p")).unwrap();
    settle().await;
    assert_eq!(noting.take(), ["bad"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_to_an_object_that_cannot_be_decoded_is_confirmed_by_its_metadata() {
    let sandbox = sandbox();
    sandbox.create(&PARTS, part("p", "unused")).unwrap();
    sandbox.create(&SETS, set("spoils", 0)).unwrap();
    let (_manager, noting) = sets_and_parts(&sandbox).await;
    assert_eq!(noting.take(), ["spoils"]);
    sandbox.patch(&SETS, &key("spoils"), &json!({ "size": 2 })).unwrap();
    settle().await;
    assert_eq!(noting.take(), ["spoils"], "the key does not wait for its write");
}

/// Looks up a part by the name of the key, and waits for it if it cannot be decoded.
struct LooksUp {
    parts: Informer<Sized>,
    noting: Noting,
}

#[async_trait]
impl Reconcile for LooksUp {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let found = match self.parts.lookup(key) {
            Lookup::Found(_) => "found",
            Lookup::Absent => "absent",
            Lookup::Undecodable(object) => {
                session.requeue_when_decodable(&self.parts.cache(), &object);
                "undecodable"
            }
        };
        self.noting.0.lock().push(format!("{} {found}", key.name()));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_looks_up_an_object_that_cannot_be_decoded_is_reconciled_again_when_it_changes() {
    let sandbox = sandbox();
    for name in ["mended", "deleted", "absent"] {
        sandbox.create(&SETS, set(name, 0)).unwrap();
    }
    for name in ["mended", "deleted"] {
        sandbox.create(&PARTS, sized(part(name, "unused"), &json!("big"))).unwrap();
    }
    let noting = Noting::default();
    let notes = noting.clone();
    let manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let mut sets = context.control_loop("sets");
            sets.primary_for::<Sized>(Source::of(SETS));
            let parts = sets.reads_for::<Sized>(Source::of(PARTS));
            let sets = sets.reconcile(LooksUp { parts, noting: notes.clone() });
            async move { Ok(Loops::new().with(sets)) }
        })
        .start();
    let held = || {
        let status = manager.handle.controllers().into_iter().flat_map(|controller| controller.loops);
        status.map(|one| one.held.undecodable).sum::<usize>()
    };
    settle().await;
    let mut first = noting.take();
    first.sort();
    assert_eq!(
        (first, held()),
        (["absent absent", "deleted undecodable", "mended undecodable"].map(str::to_owned).into(), 2)
    );
    sandbox.delete(&PARTS, &key("deleted")).unwrap();
    settle().await;
    assert_eq!((noting.take(), held()), (vec!["deleted absent".to_owned()], 1), "although it was never in the cache");
    sandbox.patch(&PARTS, &key("mended"), &json!({ "size": "bigger" })).unwrap();
    settle().await;
    assert_eq!((noting.take(), held()), (vec!["mended undecodable".to_owned()], 1));
    sandbox.patch(&PARTS, &key("mended"), &json!({ "size": 1 })).unwrap();
    settle().await;
    assert_eq!((noting.take(), held()), (vec!["mended found".to_owned()], 0));
    sandbox.patch(&PARTS, &key("mended"), &json!({ "size": 2 })).unwrap();
    settle().await;
    assert_eq!(noting.take(), [""; 0], "a change that was not waited for");
}
