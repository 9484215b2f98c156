//! An ordinary controller, written with nothing but kube, that runs against the sandbox unchanged.
//!
//! [`mirror`] knows nothing of the sandbox: it gets a kubeconfig, as of any cluster. The test holds the
//! sandbox, and acts upon it as a second user.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::pin::pin;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kcm_sandbox_apiserver::{CONFIG_MAPS, Cut, EVENTS, Sandbox};
use kcm_sandbox_listener::{ListenOptions, Listener};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::wait::{Condition, await_condition, conditions::is_deleted};
use kube::runtime::{reflector, watcher};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinSet;

/// Copies config maps that ask for it, and removes each copy before its original goes.
mod mirror {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use futures::StreamExt as _;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams};
    use kube::config::{KubeConfigOptions, Kubeconfig};
    use kube::runtime::controller::{Action, Controller};
    use kube::runtime::finalizer::{self, Event, finalizer};
    use kube::runtime::reflector::Store;
    use kube::runtime::watcher;
    use kube::{Client, Config, Resource as _, ResourceExt as _};

    pub(crate) const FINALIZER: &str = "example.org/mirror";
    const LABEL: &str = "example.org/mirror=true";

    type Error = finalizer::Error<kube::Error>;

    pub(crate) async fn client(kubeconfig: &Path) -> Client {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig is readable");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Client::try_from(config.expect("the kubeconfig is whole")).expect("the certificates are usable")
    }

    /// The controller, and its cache of what it mirrors.
    pub(crate) fn start(client: Client) -> (impl Future<Output = ()>, Store<ConfigMap>) {
        let originals = Api::<ConfigMap>::default_namespaced(client.clone());
        let controller = Controller::new(originals.clone(), watcher::Config::default().labels(LABEL))
            .owns(originals, watcher::Config::default());
        let store = controller.store();
        let retry = |_, _: &Error, _| Action::requeue(Duration::from_millis(1));
        let run = controller.run(reconcile, retry, Arc::new(client)).for_each(|_| std::future::ready(()));
        (run, store)
    }

    async fn reconcile(original: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, Error> {
        let api = Api::<ConfigMap>::default_namespaced(Client::clone(&client));
        let event = async |event| match event {
            Event::Apply(original) => copy(&api, &original).await,
            Event::Cleanup(original) => remove(&api, &original).await,
        };
        finalizer(&api, FINALIZER, original, event).await
    }

    async fn copy(api: &Api<ConfigMap>, original: &ConfigMap) -> Result<Action, kube::Error> {
        let name = copy_of(&original.name_any());
        let copy = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                owner_references: original.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: original.data.clone(),
            ..ConfigMap::default()
        };
        api.patch(&name, &PatchParams::apply("mirror").force(), &Patch::Apply(&copy)).await?;
        Ok(Action::await_change())
    }

    async fn remove(api: &Api<ConfigMap>, original: &ConfigMap) -> Result<Action, kube::Error> {
        let removed = api.delete(&copy_of(&original.name_any()), &DeleteParams::default()).await;
        removed.map(drop).or_else(|error| if is_not_found(&error) { Ok(()) } else { Err(error) })?;
        Ok(Action::await_change())
    }

    pub(crate) fn copy_of(name: &str) -> String {
        format!("{name}-copy")
    }

    fn is_not_found(error: &kube::Error) -> bool {
        matches!(error, kube::Error::Api(status) if status.code == 404)
    }
}

/// A served sandbox; its kubeconfig is all that the program gets.
struct Cluster {
    folder: tempfile::TempDir,
    sandbox: Sandbox,
    _tasks: JoinSet<()>,
}

impl Cluster {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("there must be a place for files");
        let sandbox = Sandbox::default();
        let listener = Listener::bind(&sandbox, ListenOptions::default()).await.expect("a port is free");
        listener.write_kubeconfig(&folder.path().join("kubeconfig")).expect("the folder is ours");
        let mut tasks = JoinSet::new();
        tasks.spawn(listener.serve(std::future::pending()));
        Self { folder, sandbox, _tasks: tasks }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }
}

fn original(name: &str, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([("example.org/mirror".to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some([("text".to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    }
}

fn says(text: &'static str) -> impl Condition<ConfigMap> {
    move |map: Option<&ConfigMap>| {
        map.and_then(|map| map.data.as_ref()).and_then(|data| data.get("text")).is_some_and(|found| found == text)
    }
}

#[tokio::test]
async fn a_controller_with_a_store_an_apply_and_a_finalizer_runs_unchanged() {
    let cluster = Cluster::start().await;
    let client = mirror::client(&cluster.kubeconfig()).await;
    let (run, store) = mirror::start(client.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(run);
    let api = Api::<ConfigMap>::default_namespaced(client);
    let made = api.create(&PostParams::default(), &original("web", "one")).await.expect("it is new");
    let copy = await_condition(api.clone(), "web-copy", says("one")).await.expect("it is watched");
    let copy = copy.expect("it is there");
    let uid = made.uid().expect("it has one");
    assert_eq!(copy.owner_references().iter().map(|owner| &owner.uid).collect::<Vec<_>>(), [&uid]);
    let managers: Vec<_> = copy.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(managers, ["mirror"]);
    let guarded = api.get("web").await.expect("it is there");
    assert_eq!(guarded.finalizers(), [mirror::FINALIZER]);

    let note = Patch::Merge(json!({ "data": { "note": "of a third party" } }));
    api.patch("web-copy", &PatchParams::default(), &note).await.expect("it is there");
    let change = Patch::Merge(json!({ "data": { "text": "two" } }));
    api.patch("web", &PatchParams::default(), &change).await.expect("it is there");
    let copy = await_condition(api.clone(), "web-copy", says("two")).await.expect("it is watched");
    let data = copy.expect("it is there").data.unwrap_or_default();
    assert!(data.contains_key("note"), "applying leaves what others have written");

    let deleted = api.delete("web", &DeleteParams::default()).await.expect("it is there");
    let terminating = deleted.left().expect("its finalizer holds it");
    assert!(terminating.metadata.deletion_timestamp.is_some());
    await_condition(api.clone(), "web", is_deleted(&uid)).await.expect("it is watched");
    assert!(api.get_opt("web-copy").await.expect("it may be read").is_none(), "the copy went first");
    while !store.is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_recorder_writes_an_event_and_counts_it() {
    let cluster = Cluster::start().await;
    let client = mirror::client(&cluster.kubeconfig()).await;
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let made = api.create(&PostParams::default(), &original("web", "one")).await.expect("it is new");
    let recorder = Recorder::new(client, Reporter { controller: "example.org/mirror".to_owned(), instance: None });
    let event = Event {
        type_: EventType::Normal,
        reason: "Copied".to_owned(),
        note: Some("made a copy".to_owned()),
        action: "Copy".to_owned(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&event, &made.object_ref(&())).await.expect("events are served");
    }
    let events = cluster.sandbox.list(&EVENTS, Some("default"));
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["message"], &events[0]["series"]["count"]), (&json!("made a copy"), &json!(3)));
    assert_eq!(events[0]["involvedObject"]["name"], "web");
}

#[tokio::test]
async fn a_store_survives_cut_watches_and_lost_history() {
    let cluster = Cluster::start().await;
    let client = mirror::client(&cluster.kubeconfig()).await;
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let api = Api::<ConfigMap>::default_namespaced(client.clone());
        let (store, writer) = reflector::store();
        let mut events = pin!(reflector(writer, watcher(api.clone(), config)));
        let mut until = async |names: &[&str]| {
            let matches = || {
                store.state().iter().map(|map| map.name_any()).collect::<BTreeSet<_>>()
                    == names.iter().map(|&name| name.to_owned()).collect()
            };
            while !matches() {
                // An error is followed by another attempt.
                drop(events.next().await.expect("watchers do not end"));
            }
        };
        for name in ["a", "b"] {
            api.create(&PostParams::default(), &original(name, "")).await.expect("it is new");
        }
        until(&["a", "b"]).await;
        cluster.sandbox.faults().cut_watches(&CONFIG_MAPS, Cut::Broken);
        api.delete("a", &DeleteParams::default()).await.expect("it is there");
        api.create(&PostParams::default(), &original("c", "")).await.expect("it is new");
        cluster.sandbox.compact();
        until(&["b", "c"]).await;
        api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.expect("they are there");
        until(&[]).await;
    }
}
