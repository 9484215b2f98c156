//! The parts of a session besides the client: the time and the recorder.

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_api::{Document, Documented, KnownView, Meta, ObjectKey, PartialObjectMeta, Resource, View};
use kcm_framework::client::{Payload, RequestOrigin};
use kcm_framework::consistency::pending_writes::PendingWrite;
use kcm_framework::events::{Event, EventText};
use kcm_framework::explain::KeyState;
use kcm_framework::{Loops, Reconcile, ReconcileError, Session, Source, async_trait};
use kcm_informers::Informer;
use kcm_sandbox_apiserver::{EVENTS, Fault, Sandbox, Status, Verb};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::guarantees::support::{
    CONTROLLER, Options, PARTS, SETS, Setup, World, descriptor, key, part, sandbox, seconds, set, settle, until,
};

struct Greeted;

impl Event for Greeted {
    fn text(&self) -> EventText<'_> {
        EventText::warning("Greeted", "as the test wants it")
    }
}

struct Set(PartialObjectMeta);

impl View for Set {
    fn decode(json: &str) -> Result<Self, kcm_api::DecodeError> {
        PartialObjectMeta::decode(json).map(Self)
    }

    fn meta(&self) -> &Meta {
        self.0.meta()
    }
}

impl KnownView for Set {
    const RESOURCE: Resource = SETS;
}

#[tokio::test(start_paused = true)]
async fn a_session_knows_the_time_and_requeues_at_a_time() {
    let world = World::start(|turn| {
        async move {
            let now = turn.session.now();
            match turn.number {
                0 => turn.session.requeue_by(now + seconds(90)),
                // A time that is past is at once.
                1 => turn.session.requeue_by(now - seconds(90)),
                _ => {}
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 0);
    assert_eq!(world.visited(3).await, [seconds(0), seconds(90), seconds(90)]);
}

#[tokio::test(start_paused = true)]
async fn a_session_records_events_of_its_controller() {
    let world = World::start(|turn| {
        async move {
            let set = Set(PartialObjectMeta::decode(r#"{"metadata":{"namespace":"default","name":"a"}}"#).unwrap());
            turn.session.record(&set, &Greeted);
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 0);
    until("it was sent", || world.sandbox.list(&EVENTS, None).len() == 1).await;
    let event = &world.sandbox.list(&EVENTS, None)[0];
    let written = ["type", "reason", "message"].map(|field| event[field].as_str().unwrap());
    assert_eq!(written, ["Warning", "Greeted", "as the test wants it"]);
    assert_eq!(event["involvedObject"]["kind"], "Set");
    assert_eq!(event["source"]["component"], CONTROLLER);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_a_session_puts_keeps_what_nobody_reads() {
    let sandbox = sandbox();
    let mut object = part("p", "a");
    object["spec"] = json!({ "unknown": [1.50, { "b": [] }] });
    let created = sandbox.create(&PARTS, object).unwrap();
    let json = created.to_string();
    let world = World::with(crate::guarantees::support::Options::default(), &sandbox, move |turn| {
        let mut document = Document::parse(&json).unwrap();
        async move {
            if turn.number == 0 {
                document.set(&["spec", "replicas"], &3).unwrap();
                turn.session.of(&PARTS).update(&key("p"), Payload::raw(document.as_str().to_owned())).await?;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.visited(1).await;
    let stored: Value = world.sandbox.get(&PARTS, &key("p")).unwrap();
    assert_eq!(stored["spec"], json!({ "unknown": [1.50, { "b": [] }], "replicas": 3 }));
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_others_are_kept_and_a_stale_object_is_a_conflict() {
    let sandbox = sandbox();
    let mut object = part("p", "a");
    object["metadata"]["finalizers"] = json!(["example.com/other"]);
    let json = sandbox.create(&PARTS, object).unwrap().to_string();
    let stored = sandbox.clone();
    let world = World::with(crate::guarantees::support::Options::default(), &sandbox, move |turn| {
        let (json, sandbox) = (json.clone(), stored.clone());
        async move {
            if turn.number > 0 {
                return Ok(());
            }
            let now = || sandbox.get(&PARTS, &key("p")).unwrap();
            let meta = |object: &str| PartialObjectMeta::decode(object).unwrap().metadata;
            let (mut first, ours) = (meta(&json), "example.com/ours");
            let session = &turn.session;
            assert!(!session.of(&PARTS).remove_finalizer(&first, ours).await?);
            assert!(session.of(&PARTS).add_finalizer(&first, ours).await?);
            assert_eq!(now()["metadata"]["finalizers"], json!(["example.com/other", ours]));
            let second = meta(&now().to_string());
            assert!(!session.of(&PARTS).add_finalizer(&second, ours).await?);
            // The cache is behind.
            first.finalizers.clone_from(&second.finalizers);
            let stale = session.of(&PARTS).remove_finalizer(&first, ours).await;
            assert!(stale.is_err_and(|error| error.is_conflict()));
            assert!(session.of(&PARTS).remove_finalizer(&second, ours).await?);
            assert_eq!(now()["metadata"]["finalizers"], json!(["example.com/other"]));
            Ok(())
        }
        .boxed()
    })
    .await;
    world.create_set("a", 0);
    world.visited(1).await;
}

/// Applies a configuration to the part `p` of each set, and creates sets alone.
struct Applying(Informer<Documented<PartialObjectMeta>>);

#[async_trait]
impl Reconcile for Applying {
    async fn reconcile(&self, _: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let configuration = json!({
            "apiVersion": PARTS.api_version(), "kind": PARTS.kind, "metadata": { "name": "p", "namespace": "default" },
            "spec": { "color": "red", "sizes": [1] },
        });
        session.ensure_applied(&self.0, &key("p"), "sets-controller", &configuration).await?;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_applied_again_where_it_is_not_as_configured_and_only_there() {
    let sandbox = sandbox();
    let _started = Setup::on(&sandbox)
        .controller(descriptor(CONTROLLER), |context| async move {
            let mut sets = context.control_loop("sets");
            let _sets = sets.primary::<Set>();
            let parts = sets.watches_for(Source::<Documented<PartialObjectMeta>>::of(PARTS), |_| [key("a")]);
            Ok(Loops::new().with(sets.reconcile(Applying(parts))))
        })
        .start();
    sandbox.create(&SETS, set("a", 0)).unwrap();
    let spec = || sandbox.get(&PARTS, &key("p")).unwrap_or_default()["spec"].clone();
    let applied = json!({ "color": "red", "sizes": [1] });
    until("it is applied", || spec() == applied).await;
    for (change, then) in [
        (json!({ "spec": { "color": "blue" } }), applied.clone()),
        (json!({ "spec": { "sizes": [1, 2] } }), applied.clone()),
        // A field of another.
        (json!({ "spec": { "shape": "round" } }), json!({ "color": "red", "sizes": [1], "shape": "round" })),
    ] {
        sandbox.patch(&PARTS, &key("p"), &change).unwrap();
        until("the object is as configured", || spec() == then).await;
    }
    tokio::time::sleep(seconds(60)).await;
    let patches = sandbox.requests().iter().filter(|request| request.method == "PATCH").count();
    assert_eq!(patches, 3);
}

/// A client that notes the origins of the creations of parts.
fn noting(sandbox: &Sandbox, origins: &Arc<Mutex<Vec<Option<RequestOrigin>>>>) -> kube::Client {
    let (service, origins) = (sandbox.service(), Arc::clone(origins));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        if *request.method() == http::Method::POST && request.uri().path().ends_with("/parts") {
            origins.lock().push(request.extensions().get::<RequestOrigin>().cloned());
        }
        service.clone().oneshot(request)
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn each_request_carries_the_loop_the_key_and_the_attempt_that_sends_it() {
    let (sandbox, origins) = (sandbox(), Arc::default());
    drop(sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(1).fail(Status::new(
        400,
        "BadRequest",
        "as the test wants it",
    ))));
    let options = Options { client: Some(noting(&sandbox, &origins)), ..Options::default() };
    let world = World::with(options, &sandbox, |turn| turn.create_missing().boxed()).await;
    world.create_set("a", 1);
    until("it was created", || sandbox.list(&PARTS, None).len() == 1).await;
    let of = |attempt| {
        let origin = RequestOrigin::of_key("sets", &key("a"), attempt);
        assert_eq!(origin.key.as_deref(), Some("default/a"));
        Some(origin)
    };
    assert_eq!(*origins.lock(), [of(1), of(2)]);
}

#[tokio::test(start_paused = true)]
async fn names_of_new_objects_do_not_depend_on_other_keys() {
    let mut names = Vec::new();
    for others in [0, 3] {
        let world = World::start(|turn| turn.create_missing().boxed()).await;
        (0..others).for_each(|number| world.create_set(&format!("other-{number}"), 2));
        until("the others have their parts", || world.sandbox.list(&PARTS, None).len() == 2 * others).await;
        world.create_set("a", 2);
        until("it has its parts", || world.sandbox.list(&PARTS, None).len() == 2 * others + 2).await;
        let mut own = world.sandbox.list(&PARTS, None);
        own.retain(|part| part["metadata"]["labels"]["set"] == "a");
        names.push(own.iter().map(|part| part["metadata"]["name"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(names[0], names[1]);
}

#[tokio::test(start_paused = true)]
async fn all_keys_of_a_loop_can_be_seen_with_their_due_times_and_pending_writes() {
    let sandbox = sandbox();
    let world = World::with(Options::default(), &sandbox, |turn| {
        async move {
            if turn.key.name() == "late" {
                turn.session.requeue_after(seconds(90));
            }
            turn.create_missing().await
        }
        .boxed()
    })
    .await;
    sandbox.faults().hold_watches(&PARTS);
    world.create_set("late", 0);
    world.create_set("parked", 1);
    until("it was created", || sandbox.list(&PARTS, None).len() == 1).await;
    settle().await;
    let seen = world.manager.handle.loop_keys();
    let [sets] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((sets.controller, sets.name, &sets.resource), (CONTROLLER, "sets", &Some(SETS)));
    assert_eq!(sets.reads, [SETS, PARTS]);
    let [late, parked] = &sets.keys[..] else { panic!("{sets:?}") };
    assert_eq!((&late.object, late.state, late.failures), (&key("late"), KeyState::Idle, 0));
    assert!(late.due_in.is_some_and(|due| due > seconds(89)) && late.pending_writes.is_empty(), "{late:?}");
    assert_eq!((&parked.object, parked.state), (&key("parked"), KeyState::WaitingForWrites));
    assert!(matches!(parked.pending_writes[..], [PendingWrite::Version { cache: 1, .. }]), "{parked:?}");
    let status = world.manager.handle.controller(CONTROLLER).unwrap();
    assert_eq!(status.loops[0].reads, [SETS, PARTS]);
}
