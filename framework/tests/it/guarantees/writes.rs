//! Every kind of write is waited for, and is not taken for undone because its answer was lost.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kcm_api::{PartialObjectMeta, Resource, Selector};
use kcm_framework::Delete;
use kcm_framework::Session;
use kcm_framework::client::{ApiError, Patch, Payload, Subresource};
use kcm_informers::ListOptions;
use kcm_sandbox_apiserver::{Fault, NAMESPACES, PODS, Sandbox, ScalePaths, Status, Verb};
use serde_json::{Value, json};

use crate::guarantees::support::{Options, World, key, sandbox, seconds, settle};

/// A kind that only the API server knows, with a scale.
const GADGETS: Resource = Resource::namespaced("example.com", "v1", "gadgets", "Gadget");

/// A write is given 30 s by the API server and 4 s for the network; the last of four attempts begins after 0.5 s.
const DEADLINE: Duration = Duration::from_secs(34);
const LAST_DEADLINE: Duration = Duration::from_millis(34_500);

type Write = for<'a> fn(&'a Session, &'a PartialObjectMeta) -> BoxFuture<'a, Result<(), ApiError>>;

/// A kind of write to the object of set `a`, named `p`.
struct Case {
    name: &'static str,
    resource: Resource,
    /// The object before the write.
    object: Value,
    write: Write,
    /// Returns `true` if the object in the API server shows the effect.
    took_effect: fn(Option<&Value>) -> bool,
    /// Whether the write is sent again when its connection breaks.
    reconnects: bool,
}

fn labels() -> Value {
    json!({"set": "a"})
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": labels()},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn gadget() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Gadget",
        "metadata": {"name": "p", "namespace": "default", "labels": labels()}, "spec": {"replicas": 1},
    })
}

fn cases() -> impl Iterator<Item = Case> {
    writes_to_any_kind().into_iter().chain(writes_to_subresources())
}

fn writes_to_any_kind() -> Vec<Case> {
    vec![
        Case {
            name: "apply",
            resource: GADGETS,
            object: gadget(),
            write: |session, _| {
                async {
                    let configuration = json!({
                        "apiVersion": "example.com/v1", "kind": "Gadget",
                        "metadata": {"name": "p", "namespace": "default"}, "spec": {"color": "red"},
                    });
                    session.of(&GADGETS).apply(&key("p"), "sets-controller", &configuration).await.map(drop)
                }
                .boxed()
            },
            took_effect: |object| object.unwrap()["spec"] == json!({"replicas": 1, "color": "red"}),
            reconnects: true,
        },
        Case {
            name: "metadata of any kind",
            resource: GADGETS,
            object: gadget(),
            write: |session, object| {
                async {
                    let metadata = json!({"uid": object.metadata.uid, "annotations": {"written": "yes"}});
                    let patch = Patch::Merge(Payload::json(&json!({"metadata": metadata})));
                    // As discovery serves it: the resource is a value.
                    let resource = Resource { plural: "gadgets".to_owned().into(), ..GADGETS };
                    session.of(&resource).patch(&object.metadata.key, patch).await.map(drop)
                }
                .boxed()
            },
            took_effect: |object| object.unwrap()["metadata"]["annotations"]["written"] == "yes",
            reconnects: true,
        },
        Case {
            name: "finalizer",
            resource: GADGETS,
            object: gadget(),
            write: |session, object| {
                async { session.of(&GADGETS).add_finalizer(&object.metadata, "example.com/f").await.map(drop) }.boxed()
            },
            took_effect: |object| object.unwrap()["metadata"]["finalizers"] == json!(["example.com/f"]),
            reconnects: true,
        },
        Case {
            name: "scale of any kind",
            resource: GADGETS,
            object: gadget(),
            write: |session, object| {
                async {
                    let mut scale = session.api().scale(&GADGETS, &object.metadata.key).await?;
                    assert_eq!((scale.replicas, &scale.uid), (1, &object.metadata.uid));
                    scale.replicas = 7;
                    session.of(&GADGETS).update_scale(&object.metadata.key, &scale).await.map(drop)
                }
                .boxed()
            },
            took_effect: |object| object.unwrap()["spec"]["replicas"] == 7,
            reconnects: true,
        },
        Case {
            name: "deletion of a collection",
            resource: GADGETS,
            object: gadget(),
            write: |session, _| {
                async {
                    let selected = ListOptions {
                        namespace: Some("default".to_owned()),
                        label_selector: Some(Selector::of_labels([("set", "a")])),
                        ..ListOptions::default()
                    };
                    session.of(&GADGETS).delete_collection(&selected, &Delete::default()).await
                }
                .boxed()
            },
            took_effect: |object| object.is_none(),
            reconnects: false,
        },
    ]
}

fn writes_to_subresources() -> Vec<Case> {
    vec![
        Case {
            name: "apply of the status",
            resource: PODS,
            object: pod(),
            write: |session, _| {
                async {
                    let configuration = json!({
                        "apiVersion": "v1", "kind": "Pod",
                        "metadata": {"name": "p", "namespace": "default"}, "status": {"message": "applied"},
                    });
                    let patch = Patch::apply("sets-controller", &configuration);
                    session.of(&PODS).patch_status(&key("p"), patch).await.map(drop)
                }
                .boxed()
            },
            took_effect: |object| object.unwrap()["status"]["message"] == "applied",
            reconnects: true,
        },
        Case {
            name: "status",
            resource: PODS,
            object: pod(),
            write: |session, object| {
                async {
                    session.of(&PODS).merge_status(&object.metadata, &json!({"message": "merged"})).await.map(drop)
                }
                .boxed()
            },
            took_effect: |object| object.unwrap()["status"]["message"] == "merged",
            reconnects: true,
        },
        Case {
            name: "finalize",
            resource: NAMESPACES,
            object: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "p", "labels": labels()}}),
            write: |session, object| {
                async {
                    let name = &object.metadata.key;
                    let json = session.api().get_raw(&NAMESPACES, name, Subresource::None).await?;
                    let mut namespace: Value = serde_json::from_slice(&json).unwrap();
                    namespace["spec"]["finalizers"] = json!([]);
                    let body = Payload::json(&namespace);
                    session.of(&NAMESPACES).put(name, Subresource::FINALIZE, body).await.map(drop)
                }
                .boxed()
            },
            took_effect: |object| object.unwrap()["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty),
            reconnects: true,
        },
        Case {
            name: "eviction",
            resource: PODS,
            object: pod(),
            write: |session, object| {
                let (key, uid) = (&object.metadata.key, &object.metadata.uid);
                async { session.of(&PODS).evict(key, uid, &Delete::default()).await.map(drop) }.boxed()
            },
            took_effect: |object| object.is_none(),
            reconnects: true,
        },
    ]
}

fn gadgets() -> Sandbox {
    let sandbox = sandbox();
    sandbox.register_scaled(GADGETS, ScalePaths::default());
    sandbox
}

/// A world in which the first reconcile of set `a` makes that write, and its object.
async fn writing(case: &Case) -> World {
    let sandbox = gadgets();
    let options = Options { resource: case.resource.clone(), ..Options::default() };
    let write = case.write;
    let world = World::with(options, &sandbox, move |turn| {
        async move {
            if turn.number == 0
                && let [object] = turn.parts().as_slice()
            {
                write(turn.session, object).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    sandbox.create(&case.resource, case.object.clone()).unwrap();
    world
}

fn object(world: &World, case: &Case) -> Option<Value> {
    let mut objects = world.sandbox.list(&case.resource, None);
    objects.retain(|object| object["metadata"]["name"] == "p");
    objects.pop().map(|object| Value::clone(&object))
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_write_is_waited_for() {
    for case in cases() {
        let world = writing(&case).await;
        world.visited(1).await;
        settle().await;
        assert!((case.took_effect)(object(&world, &case).as_ref()), "{}", case.name);

        let world = writing(&case).await;
        world.sandbox.faults().delay_events(&case.resource, seconds(5));
        world.visited(1).await;
        world.add("a");
        assert_eq!(world.visited(2).await[1], seconds(5), "{}", case.name);
        settle().await;
        assert!(world.parked().is_empty(), "{}", case.name);
    }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_that_a_budget_does_not_allow_is_the_callers() {
    let sandbox = gadgets();
    let options = Options { resource: PODS, ..Options::default() };
    let world = World::with(options, &sandbox, |turn| {
        async move {
            for pod in turn.parts() {
                let (key, uid) = (&pod.metadata.key, &pod.metadata.uid);
                let error = turn.session.of(&PODS).evict(key, uid, &Delete::default()).await.unwrap_err();
                assert!(error.is_too_many_requests() && error.retry_after() == Some(seconds(10)));
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    let refused = Status::too_many_requests(10);
    let fault = sandbox.faults().inject(Fault::on(Verb::Create).subresource("eviction").fail(refused));
    sandbox.create(&PODS, pod()).unwrap();
    world.visited(1).await;
    settle().await;
    assert!(world.parked().is_empty());
    tokio::time::sleep(seconds(60)).await;
    assert_eq!((fault.hits(), world.parked().len()), (1, 0));
    assert!(!world.manager.metrics.encode().contains("result=\"panic\""));
}

#[tokio::test(start_paused = true)]
async fn an_applied_configuration_creates_changes_and_takes_back_what_it_leaves_out() {
    let options = Options { resource: GADGETS, ..Options::default() };
    let world = World::with(options, &gadgets(), |turn| {
        async move {
            let spec = if turn.wanted() == 1 { json!({"color": "red", "size": 1}) } else { json!({"size": 2}) };
            let configuration = json!({
                "apiVersion": "example.com/v1", "kind": "Gadget",
                "metadata": {"name": "p", "namespace": "default", "labels": labels()}, "spec": spec,
            });
            let patch = Patch::apply("sets-controller", &configuration);
            turn.session.of(&GADGETS).patch(&key("p"), patch).await?;
            Ok(())
        }
        .boxed()
    })
    .await;
    let spec = || world.sandbox.list(&GADGETS, None)[0]["spec"].clone();
    world.create_set("a", 1);
    settle().await;
    assert_eq!(spec(), json!({"color": "red", "size": 1}));
    world.sandbox.patch(&GADGETS, &key("p"), &json!({"spec": {"size": 5, "other": true}})).unwrap();
    settle().await;
    assert_eq!(spec(), json!({"color": "red", "size": 1, "other": true}), "taken over, and others' fields are kept");
    world.scale_set("a", 2);
    settle().await;
    assert_eq!(spec(), json!({"size": 2, "other": true}));
    assert!(world.parked().is_empty());
    let visits = world.visits().len();
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(world.visits().len(), visits, "an apply that changes nothing makes no event");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_write_whose_answer_is_lost_holds_its_key() {
    for took_effect in [true, false] {
        for case in cases() {
            let world = writing(&case).await;
            let fault = Fault::on_writes().resource(case.resource.clone()).times(if case.reconnects { 4 } else { 1 });
            let fault = if took_effect { fault.lose_answer() } else { fault.disconnect() };
            let fault = world.sandbox.faults().inject(fault);
            world.visited(1).await;
            world.add("a");
            let deadline = if case.reconnects { LAST_DEADLINE } else { DEADLINE };
            assert_eq!(world.visited(2).await[1], deadline, "{}, took effect: {took_effect}", case.name);
            settle().await;
            assert!(world.parked().is_empty(), "{}", case.name);
            assert_eq!((case.took_effect)(object(&world, &case).as_ref()), took_effect, "{}", case.name);
            assert_eq!(fault.hits(), if case.reconnects { 4 } else { 1 }, "{}", case.name);
        }
    }
}
