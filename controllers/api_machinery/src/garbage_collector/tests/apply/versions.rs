//! Owners that are named in versions that are not served, and as other kinds.
//!
//! The rows of upstream's `TestConflictingData` on an API server, each in every order.

use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, PODS};
use serde_json::{Value, json};

use super::{Made, WIDGETS, create, create_in, delete, environment, key, left, names, start};

const MINUTE: Duration = Duration::from_mins(1);
const SECRETS: Resource = Resource::namespaced("", "v1", "secrets", "Secret");

/// A reference to `owner` by another version.
fn in_version(owner: &Made, api_version: &str) -> Value {
    let mut reference = owner.reference(false);
    reference["apiVersion"] = json!(api_version);
    reference
}

fn pod(cluster: &TestCluster, name: &str, reference: Value) {
    create_in(cluster.sandbox(), &PODS, "shop", name, &[reference]);
}

/// A widget that exists nowhere, as a dependent names it.
fn ghost(api_version: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": "Widget", "name": "ghost", "uid": "11111111-2222-3333-4444-666666666666" })
}

#[tokio::test(start_paused = true)]
async fn a_child_of_an_owner_in_a_version_that_is_not_served_stays_also_after_its_owner() {
    for is_child_first in [true, false] {
        let cluster = start(environment()).await;
        if is_child_first {
            cluster.sandbox().faults().hold_watches(&WIDGETS);
        }
        let owner = create(cluster.sandbox(), &WIDGETS, "owner", &[]);
        cluster.settle().await;
        pod(&cluster, "child", in_version(&owner, "example.com/v9"));
        cluster.settle().await;
        cluster.sandbox().faults().release_watches(&WIDGETS);
        let both = |sandbox: &_| names(sandbox) == ["child", "owner"];
        cluster.consistently("both stay", 5 * MINUTE, both).await;
        cluster.sandbox().delete(&WIDGETS, &key("owner")).unwrap();
        let child = |sandbox: &_| names(sandbox) == ["child"];
        cluster.consistently("the version may be an unknown kind", 5 * MINUTE, child).await;
        let reads = cluster.requests_of("generic-garbage-collector").len();
        assert!(reads < 60, "child first {is_child_first}: {reads} requests in ten minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_of_an_absent_owner_goes_although_another_names_it_in_a_version_that_is_not_served() {
    for served_first in [true, false] {
        let cluster = start(environment()).await;
        let mut children = [("served", "example.com/v1"), ("unserved", "example.com/v9")];
        if !served_first {
            children.reverse();
        }
        for (name, api_version) in children {
            pod(&cluster, name, ghost(api_version));
            cluster.settle().await;
        }
        cluster.eventually("the served one goes", |sandbox| names(sandbox) == ["unserved"]).await;
        let other = |sandbox: &_| names(sandbox) == ["unserved"];
        cluster.consistently("the other one stays", 5 * MINUTE, other).await;
    }
}

/// A child that names a Secret with the uid of a config map, beside a child that names the config map.
#[tokio::test(start_paused = true)]
async fn a_child_that_names_its_owner_as_another_kind_goes_and_takes_no_other_child() {
    for order in
        [["bad", "good", "owner"], ["good", "bad", "owner"], ["owner", "bad", "good"], ["bad", "owner", "good"]]
    {
        let cluster = start(environment()).await;
        // The informer of the owner is last or first.
        cluster.sandbox().faults().hold_watches(&CONFIG_MAPS);
        let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
        let mut bad = owner.reference(false);
        bad["kind"] = json!(SECRETS.kind);
        bad["name"] = json!("secret");
        for step in order {
            match step {
                "bad" => pod(&cluster, "bad", bad.clone()),
                "good" => pod(&cluster, "good", owner.reference(false)),
                _ => cluster.sandbox().faults().release_watches(&CONFIG_MAPS),
            }
            cluster.settle().await;
        }
        left(&cluster, &["good", "owner"]).await;
        let good = |sandbox: &_| names(sandbox) == ["good", "owner"];
        cluster.consistently("the good child stays", 5 * MINUTE, good).await;
    }
}

/// Custom and core kinds own each other, and all go with the first owner.
#[tokio::test(start_paused = true)]
async fn custom_and_core_kinds_own_each_other_both_ways() {
    for policy in ["Background", "Foreground"] {
        let cluster = start(environment()).await;
        let core = create(cluster.sandbox(), &CONFIG_MAPS, "core", &[]);
        let custom = create(cluster.sandbox(), &WIDGETS, "custom", &[(&core, true)]);
        create(cluster.sandbox(), &CONFIG_MAPS, "core-of-custom", &[(&custom, true)]);
        create(cluster.sandbox(), &PODS, "other", &[]);
        cluster.settle().await;
        delete(&cluster, "core", policy).await;
        left(&cluster, &["other"]).await;
    }
}

/// A dependent with a finalizer is deleted once, and a second deletion of its owner changes nothing.
#[tokio::test(start_paused = true)]
async fn an_object_with_a_finalizer_that_is_deleted_twice_goes_when_its_finalizer_does() {
    let cluster = start(environment()).await;
    create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    super::hold(cluster.sandbox(), &CONFIG_MAPS, "owner");
    for _ in 0..2 {
        delete(&cluster, "owner", "Foreground").await;
        cluster.settle().await;
        let owner = cluster.sandbox().get(&CONFIG_MAPS, &key("owner")).expect("its finalizer holds it");
        assert_eq!(owner["metadata"]["finalizers"], json!(["example.com/hold"]), "the finalizer of the collector goes");
    }
    super::release(cluster.sandbox(), &CONFIG_MAPS, "owner");
    left(&cluster, &[]).await;
}
