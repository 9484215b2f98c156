//! Tasks of a loop besides reconciling: a barrier, a preparation, periodic work and ownership. The guide to plugins
//! shows these pieces.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Namespace, Pod, ReplicaSet};
use kcm_framework::informers::Informer;
use kcm_framework::ownership::{Claims, Dependents, Owner, Owners, adopt_and_release};
use kcm_framework::{
    ControllerContext, ControllerDescriptor, Delete, Loops, Reconcile, ReconcileError, Session, async_trait,
};
use kcm_testing::sandbox::{NAMESPACES, PODS, REPLICA_SETS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

const NUMBER: &str = "example.com/number";
const EXPIRES: &str = "example.com/expires";

fn number_of(namespace: &Namespace) -> Option<u32> {
    namespace.metadata.labels.get(NUMBER)?.parse().ok()
}

async fn give(session: &Session, namespace: &Namespace, number: u32) -> Result<(), ReconcileError> {
    let labels = json!({ "metadata": { "labels": { NUMBER: number.to_string() } } });
    session.merge_patch(namespace, labels).await?;
    Ok(())
}

/// Gives each namespace the lowest number that is free.
struct LowestNumber {
    namespaces: Informer<Namespace>,
}

fn lowest_number(context: &ControllerContext) -> Loops {
    let mut numbers = context.control_loop("lowest-number");
    let reconciler = LowestNumber { namespaces: numbers.primary() };
    Loops::new().with(numbers.barrier().reconcile(reconciler))
}

#[async_trait]
impl Reconcile for LowestNumber {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(()) };
        if number_of(&namespace).is_some() {
            return Ok(());
        }
        let given: BTreeSet<u32> = self.namespaces.list().iter().filter_map(|other| number_of(other)).collect();
        let free = (1..=u32::MAX).find(|number| !given.contains(number)).unwrap_or(u32::MAX);
        give(session, &namespace, free).await
    }
}

/// Gives each namespace a number that no other had before.
struct NextNumber {
    namespaces: Informer<Namespace>,
    last: AtomicU32,
}

fn next_number(context: &ControllerContext) -> Loops {
    let mut numbers = context.control_loop("next-number");
    let reconciler = NextNumber { namespaces: numbers.primary(), last: AtomicU32::default() };
    Loops::new().with(numbers.workers(5).reconcile(reconciler))
}

#[async_trait]
impl Reconcile for NextNumber {
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        let given = self.namespaces.list().into_iter().filter_map(|namespace| number_of(&namespace));
        self.last.store(given.max().unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(()) };
        if number_of(&namespace).is_some() {
            return Ok(());
        }
        give(session, &namespace, self.last.fetch_add(1, Ordering::Relaxed) + 1).await
    }
}

fn expiry(context: &ControllerContext) -> Loops {
    let mut expiry = context.control_loop("expiry");
    let namespaces: Informer<Namespace> = expiry.reads();
    Loops::new().with(expiry.periodic(Duration::from_mins(10), move |session| {
        let namespaces = namespaces.list();
        Box::pin(async move {
            for namespace in namespaces {
                let meta = &namespace.metadata;
                let expires = meta.labels.get(EXPIRES).and_then(|seconds| seconds.parse::<i64>().ok());
                if expires.is_some_and(|expires| expires < session.now().as_second()) {
                    session.delete(&*namespace, Delete::default()).await?;
                }
            }
            Ok(())
        })
    }))
}

/// Adopts the orphans that a replica set selects, and releases what it does not select any more.
struct Adoption {
    sets: Informer<ReplicaSet>,
    pods: Dependents<Pod>,
}

fn adoption(context: &ControllerContext) -> Loops {
    let mut adoption = context.control_loop("adoption");
    let sets = adoption.primary::<ReplicaSet>();
    let owners = Owners::known(sets.clone(), |set: &ReplicaSet| set.selector.as_ref().ok());
    let pods = adoption.watches::<Pod, _>(move |change| owners.keys(change));
    Loops::new().with(adoption.reconcile(Adoption { sets, pods: Dependents::of(&pods) }))
}

#[async_trait]
impl Reconcile for Adoption {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(set) = self.sets.get(key) else { return Ok(()) };
        let Ok(selector) = &set.selector else { return Ok(()) };
        let owner = Owner::of(&*set);
        let candidates = self.pods.owned_or_orphaned(owner, Some(selector));
        let pods = adopt_and_release(session, owner, Claims::of(owner, selector, &candidates)).await?;
        assert!(pods.len() <= candidates.len());
        Ok(())
    }
}

/// A controller of one of these loops.
const fn controller(name: &'static str) -> ControllerDescriptor {
    ControllerDescriptor::new(name, |context| {
        let init = match context.controller() {
            "lowest-number-controller" => lowest_number,
            "next-number-controller" => next_number,
            "expiry-controller" => expiry,
            _other => adoption,
        };
        Ok(init(context))
    })
}

fn label(sandbox: &Sandbox, namespace: &str, label: &str) -> Option<String> {
    let namespace = sandbox.get(&NAMESPACES, &ObjectKey::cluster_scoped(namespace))?;
    namespace["metadata"]["labels"][label].as_str().map(str::to_owned)
}

/// The numbers of all namespaces, sorted.
fn numbers(cluster: &TestCluster) -> Vec<u32> {
    let namespaces = cluster.sandbox().list(&NAMESPACES, None);
    let numbers = namespaces.iter().filter_map(|namespace| namespace["metadata"]["labels"][NUMBER].as_str());
    let mut numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// A new cluster has four namespaces.
async fn all_are_numbered(cluster: &TestCluster, namespaces: usize) {
    cluster
        .eventually("all namespaces have a number", |sandbox| {
            let all = sandbox.list(&NAMESPACES, None);
            all.len() == namespaces && all.iter().all(|one| one["metadata"]["labels"][NUMBER].is_string())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn with_a_barrier_no_number_is_given_twice_although_events_are_late() {
    let environment = TestEnvironment::new([controller("lowest-number-controller")]);
    let late = |sandbox: &Sandbox| sandbox.faults().delay_events(&NAMESPACES, Duration::from_secs(2));
    let cluster = environment.prepare(late).start().await;
    all_are_numbered(&cluster, 4).await;
    assert_eq!(numbers(&cluster), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_preparation_knows_the_numbers_that_were_given_before() {
    let prepared = |sandbox: &Sandbox| {
        let number = json!({ "metadata": { "labels": { NUMBER: "7" } } });
        sandbox.patch(&NAMESPACES, &ObjectKey::cluster_scoped("default"), &number).expect("the patch must be valid");
    };
    let cluster = TestEnvironment::new([controller("next-number-controller")]).prepare(prepared).start().await;
    all_are_numbered(&cluster, 4).await;
    assert_eq!(numbers(&cluster), [7, 8, 9, 10]);
}

#[tokio::test(start_paused = true)]
async fn periodic_work_deletes_what_has_expired() {
    let cluster = TestEnvironment::new([controller("expiry-controller")]).start().await;
    let expires = cluster.sandbox().now().as_second() + 3600;
    cluster.sandbox().create_namespace("guest").expect("the name must be free");
    let labels = json!({ "metadata": { "labels": { EXPIRES: expires.to_string() } } });
    let guest = ObjectKey::cluster_scoped("guest");
    cluster.sandbox().patch(&NAMESPACES, &guest, &labels).expect("the patch must be valid");
    let is_there = |sandbox: &Sandbox| label(sandbox, "guest", EXPIRES).is_some();
    cluster.consistently("the namespace is there", Duration::from_mins(59), is_there).await;
    cluster
        .eventually("the namespace is deleted", |sandbox| {
            let guest = sandbox.get(&NAMESPACES, &guest);
            guest.is_none_or(|guest| guest["metadata"]["deletionTimestamp"].is_string())
        })
        .await;
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "image" }] },
    })
}

#[tokio::test(start_paused = true)]
async fn orphans_are_adopted_and_released() {
    let cluster = TestEnvironment::new([controller("adoption-controller")]).start().await;
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": pod("web")["spec"] });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template },
    });
    cluster.sandbox().create(&REPLICA_SETS, set).expect("the replica set must be valid");
    cluster.sandbox().create(&PODS, pod("orphan")).expect("the pod must be valid");
    let orphan = ObjectKey::namespaced("default", "orphan");
    let has_owner = |sandbox: &Sandbox, owner: &str| {
        sandbox.get(&PODS, &orphan).is_some_and(|pod| pod["metadata"]["ownerReferences"][0]["name"] == owner)
    };
    cluster.eventually("the orphan is adopted", |sandbox| has_owner(sandbox, "web")).await;
    let other = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.sandbox().patch(&PODS, &orphan, &other).expect("the patch must be valid");
    cluster.eventually("the pod is released", |sandbox| !has_owner(sandbox, "web")).await;
}
