//! Controllers with a mistake each, which the search must find. Each is a mistake that others have made in production.
//!
//! The controller keeps one Secret for each ConfigMap that has its label, and deletes it before the ConfigMap is gone.

use std::collections::BTreeSet;

use kcm_framework::api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::Payload;
use kcm_framework::informers::Informer;
use kcm_framework::{
    BoxError, ControllerContext, ControllerDescriptor, Delete, Loops, Reconcile, ReconcileError, Session, Source,
    async_trait,
};
use kcm_sandbox_apiserver::Sandbox;
use kcm_simulation::{Budget, MAX_RUNS, Scenario, Schedule, Violation, run, search, shrink};
use kcm_testing::TestEnvironment;
use parking_lot::Mutex;
use serde_json::{Value, json};

const PARENTS: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
const CHILDREN: Resource = Resource::namespaced("", "v1", "secrets", "Secret");
const NAMESPACES: Resource = Resource::cluster_scoped("", "v1", "namespaces", "Namespace");
const FINALIZER: &str = "example.com/toy";

const NO_MISTAKE: u8 = 0;
/// The Secret is created only if a label says that it was not. The label is written first.
const GUARDED_BY_ITS_OWN_RECORD: u8 = 1;
/// The Secret has a generated name, which is recorded after it is created.
const RECORDED_AFTERWARDS: u8 = 2;
/// The finalizer is removed before the Secret is deleted.
const FINALIZER_FIRST: u8 = 3;
/// The Secret is created when the ConfigMap is seen for the first time, and never again.
const ACTS_ON_EDGES: u8 = 4;
/// Errors of the API server are ignored.
const IGNORES_ERRORS: u8 = 5;

struct Toy<const MISTAKE: u8> {
    parents: Informer<PartialObjectMeta>,
    children: Informer<PartialObjectMeta>,
    known: Mutex<BTreeSet<ObjectKey>>,
}

#[async_trait]
impl<const MISTAKE: u8> Reconcile for Toy<MISTAKE> {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(parent) = self.parents.get(key) else { return Ok(()) };
        let meta = &parent.metadata;
        let parents = session.of(const { &PARENTS });
        if meta.is_terminating() {
            if MISTAKE == FINALIZER_FIRST {
                parents.remove_finalizer(meta, FINALIZER).await?;
                return self.delete_children(key, session).await;
            }
            self.delete_children(key, session).await?;
            parents.remove_finalizer(meta, FINALIZER).await?;
            return Ok(());
        }
        if parents.add_finalizer(meta, FINALIZER).await? {
            return Ok(());
        }
        let is_made = match MISTAKE {
            GUARDED_BY_ITS_OWN_RECORD | RECORDED_AFTERWARDS => meta.labels.get("made").is_some(),
            ACTS_ON_EDGES => !self.known.lock().insert(key.clone()),
            _ => self.owned(key).next().is_some(),
        };
        if is_made {
            return Ok(());
        }
        let made = json!({ "metadata": { "labels": { "made": "yes" } } });
        if MISTAKE == GUARDED_BY_ITS_OWN_RECORD {
            parents.merge_patch(meta, made.clone()).await?;
        }
        let name = match MISTAKE {
            RECORDED_AFTERWARDS => session.generate_name("web-"),
            _ => format!("{}-child", key.name()),
        };
        let child = ObjectKey::namespaced("shop", name.as_str());
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "namespace": "shop", "name": name, "labels": { "of": key.name() } },
        });
        let created = session.of(const { &CHILDREN }).create(&child, Payload::json(&object)).await;
        if MISTAKE != IGNORES_ERRORS {
            created?;
        }
        if MISTAKE == RECORDED_AFTERWARDS {
            parents.merge_patch(meta, made).await?;
        }
        Ok(())
    }
}

impl<const MISTAKE: u8> Toy<MISTAKE> {
    fn owned(&self, key: &ObjectKey) -> impl Iterator<Item = ObjectKey> {
        let of = key.name().to_owned();
        let children = self.children.list().into_iter();
        children
            .filter(move |child| child.metadata.labels.get("of") == Some(&*of))
            .map(|child| child.metadata.key.clone())
    }

    async fn delete_children(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        for child in self.owned(key) {
            let Some(child) = self.children.get(&child) else { continue };
            let meta = &child.metadata;
            session.of(const { &CHILDREN }).delete(&meta.key, &meta.uid, &Delete::default()).await?;
        }
        Ok(())
    }
}

fn init<const MISTAKE: u8>(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut described = context.control_loop("toy").workers(2);
    let parents = described.primary_for(Source::of(PARENTS));
    let children = described.watches_for(Source::of(CHILDREN), |change| {
        let child: &std::sync::Arc<PartialObjectMeta> = change.object();
        child.metadata.labels.get("of").map(|of| ObjectKey::namespaced("shop", of))
    });
    let toy = Toy::<MISTAKE> { parents, children, known: Mutex::default() };
    Ok(Loops::new().with(described.reconcile(toy)))
}

/// A ConfigMap that gets its Secret, and is deleted then.
fn scenario<const MISTAKE: u8>() -> Scenario {
    let toy = ControllerDescriptor::new("toy-controller", init::<MISTAKE>);
    Scenario::new("toy", &TestEnvironment::new([toy]))
        .object(&NAMESPACES, json!({ "metadata": { "name": "shop" } }))
        .object(&PARENTS, json!({ "metadata": { "namespace": "shop", "name": "web" } }))
        .then(
            |sandbox| children(sandbox) == 1,
            |sandbox| drop(sandbox.delete(&PARENTS, &ObjectKey::namespaced("shop", "web"))),
        )
        .goal(|sandbox| {
            let parents: Vec<Value> = sandbox.list(&PARENTS, Some("shop"));
            parents.is_empty() && children(sandbox) == 0
        })
}

fn children(sandbox: &Sandbox) -> usize {
    sandbox.list(&CHILDREN, Some("shop")).len()
}

/// Checks that the search finds a mistake by this shortened schedule.
#[track_caller]
fn check<const MISTAKE: u8>(rule: &str, expected: &str) {
    let scenario = scenario::<MISTAKE>();
    let found = search(&scenario, Budget::runs(400));
    let finding = found.findings.first().unwrap_or_else(|| panic!("nothing is found in {} runs", found.runs));
    let violation = |schedule: &Schedule| -> Option<Violation> {
        let run = run(&scenario, schedule);
        run.violation.filter(|_| run.not_applied.is_empty())
    };
    let shrunk = shrink(&finding.schedule, MAX_RUNS, violation).expect("the failure must repeat");
    assert_eq!(
        (shrunk.violation.rule.as_str(), shrunk.schedule.to_string().as_str()),
        (rule, expected),
        "{}",
        finding.trace
    );
}

#[test]
fn faults_of_machines_take_effect() {
    for (line, shows) in [
        ("toy shop/web taken 1: pause 60000ms", "the process continues"),
        ("toy shop/web taken 1: outage 30000ms", "the watch of configmaps"),
        ("toy shop/web taken 1: clock +120", "clock +120"),
        ("toy shop/web write 1: kill in flight until 1 writes", "toy shop/web, dead: PATCH"),
        ("toy shop/web write 2: kill after, restart after 60000ms", "process 2 toy"),
        ("start 1: order pos 3 for 100 steps", "order pos 3"),
        ("start 1: order pct 3 for 100 steps", "order pct 3"),
    ] {
        let ran = run(&scenario::<NO_MISTAKE>(), &line.parse().expect("the line is a perturbation"));
        assert!(ran.violation.is_none() && ran.not_applied.is_empty(), "{line}: {:?}\n{}", ran.violation, ran.trace);
        assert!(ran.trace.contains(shows), "{line}\n{}", ran.trace);
    }
}

#[test]
fn a_webhook_adds_a_label_to_what_is_created() {
    let schedule = "toy shop/web write 2: mutate".parse().expect("the line is a perturbation");
    let ran = run(&scenario::<NO_MISTAKE>(), &schedule);
    assert!(ran.violation.is_none(), "{:?}\n{}", ran.violation, ran.trace);
    let is_mutated = |secret: &Value| secret["metadata"]["labels"]["example.com/webhook"] == "mutated";
    let mut created = ran.history.changes.iter().filter(|change| change.creates() && change.resource == CHILDREN);
    assert!(created.any(|change| change.after.as_deref().is_some_and(is_mutated)), "{}", ran.trace);
}

#[test]
fn nothing_is_found_in_a_controller_without_a_mistake() {
    let found = search(&scenario::<NO_MISTAKE>(), Budget::runs(400));
    let findings: Vec<_> =
        found.findings.iter().map(|it| format!("{}{}\n{}", it.schedule, it.violation, it.trace)).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(found.states > 5, "{} states in {} runs", found.states, found.runs);
}

#[test]
fn a_record_before_the_write_that_it_records_is_found() {
    check::<GUARDED_BY_ITS_OWN_RECORD>("O2", "toy shop/web write 2: fail after 500\n");
}

#[test]
fn a_record_of_a_generated_name_after_its_creation_is_found() {
    check::<RECORDED_AFTERWARDS>("O2", "toy shop/web write 2: lose response\n");
}

#[test]
fn a_finalizer_that_is_removed_too_early_is_found() {
    check::<FINALIZER_FIRST>("O2", "toy shop/web write 3: fail after 500\n");
}

#[test]
fn a_controller_that_acts_on_edges_is_found() {
    check::<ACTS_ON_EDGES>("O2", "toy shop/web write 2: fail before 500\n");
}

#[test]
fn ignored_errors_are_found() {
    check::<IGNORES_ERRORS>("O2", "toy shop/web write 2: fail before 500\n");
}
