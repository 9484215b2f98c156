//! Owners and dependents that come and go at random, and a watcher that looks for the loss of objects with a living owner.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, Sandbox};
use serde_json::Value;

use super::{Made, WIDGETS, create_in, delete, environment, key, start};

const SECOND: Duration = Duration::from_secs(1);

/// The objects of a namespace by their uids, as they were last seen.
#[derive(Default)]
struct Watcher {
    seen: BTreeMap<String, Value>,
    version: u64,
}

impl Watcher {
    /// Compares what there is with what was seen before.
    ///
    /// # Panics
    /// If an object is gone although an owner exists that does not wait for its dependents.
    fn look(&mut self, sandbox: &Sandbox) {
        if sandbox.version() == self.version {
            return;
        }
        self.version = sandbox.version();
        let all = [CONFIG_MAPS, WIDGETS, PODS].into_iter().flat_map(|resource| sandbox.list(&resource, Some("shop")));
        let now: BTreeMap<String, Value> = all.map(|object| (text(&object, "uid"), object)).collect();
        for lost in self.seen.iter().filter(|(uid, _)| !now.contains_key(*uid)).map(|(_, object)| object) {
            let living = owners(lost).into_iter().filter_map(|uid| now.get(&uid)).find(|owner| !waits(owner));
            assert!(living.is_none(), "{lost} is gone, and its owner exists: {living:?}");
        }
        self.seen = now;
    }
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

fn owners(object: &Value) -> Vec<String> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().filter_map(|reference| reference["uid"].as_str().map(str::to_owned)).collect()
}

/// Whether an object is deleted in the foreground.
fn waits(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.into_iter().flatten().any(|finalizer| finalizer == "foregroundDeletion")
}

/// Watches while that time passes.
async fn pass(cluster: &TestCluster, watcher: &mut Watcher, time: Duration) {
    let look = |sandbox: &Sandbox| {
        watcher.look(sandbox);
        true
    };
    cluster.consistently("what has a living owner stays", time, look).await;
}

/// The owner of that name as a reference of it; absent if it does not exist, or is being deleted.
fn owner(sandbox: &Sandbox, name: &str) -> Option<Made> {
    let object = sandbox.get(&CONFIG_MAPS, &key(name))?;
    object["metadata"].get("deletionTimestamp").is_none().then_some(Made { resource: CONFIG_MAPS, object })
}

/// One change: an owner is made, again under its name, or deleted; or it gets a dependent, perhaps with a second owner.
async fn change(cluster: &TestCluster, random: &mut Rng, number: usize) {
    let sandbox = cluster.sandbox();
    let name = format!("owner-{}", random.u8(0..4));
    match (owner(sandbox, &name), random.u8(0..5)) {
        (None, _) if sandbox.get(&CONFIG_MAPS, &key(&name)).is_none() => {
            create_in(sandbox, &CONFIG_MAPS, "shop", &name, &[]);
        }
        (None, _) => {}
        (Some(_), 0) => delete(cluster, &name, ["Background", "Foreground", "Orphan"][random.usize(0..3)]).await,
        (Some(_), 1) => {
            delete(cluster, &name, "Background").await;
            create_in(sandbox, &CONFIG_MAPS, "shop", &name, &[]);
        }
        (Some(first), _) => {
            let mut references = vec![first.reference(random.bool())];
            let second = owner(sandbox, &format!("owner-{}", random.u8(0..4))).filter(|it| it.object != first.object);
            references.extend(second.map(|second| second.reference(random.bool())));
            let resource = [CONFIG_MAPS, WIDGETS, PODS][random.usize(0..3)].clone();
            create_in(sandbox, &resource, "shop", &format!("dependent-{number}"), &references);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_that_has_a_living_owner_while_owners_are_recreated_and_watches_lag() {
    for seed in 0..12 {
        let mut random = Rng::with_seed(seed);
        let cluster = start(environment()).await;
        let mut watcher = Watcher::default();
        let faults = cluster.sandbox().faults();
        for number in 0..60 {
            if number % 15 == 5 {
                faults.delay_events(&[CONFIG_MAPS, WIDGETS, PODS][random.usize(0..3)], 30 * SECOND);
            }
            change(&cluster, &mut random, number).await;
            pass(&cluster, &mut watcher, Duration::from_millis(random.u64(0..3_000))).await;
        }
        faults.clear();
        pass(&cluster, &mut watcher, 90 * SECOND).await;
        cluster.settle().await;
        watcher.look(cluster.sandbox());
        for object in watcher.seen.values() {
            let owners = owners(object);
            let known = owners.iter().filter(|uid| watcher.seen.contains_key(*uid)).count();
            assert_eq!(known, owners.len(), "seed {seed}: {object} names an owner that does not exist");
            assert!(object["metadata"].get("deletionTimestamp").is_none(), "seed {seed}: {object} is not gone");
        }
    }
}
