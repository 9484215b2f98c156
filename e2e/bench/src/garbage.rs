//! Garbage and namespaces: objects that own each other, deleted in the three ways, and beside many kinds and large objects.
//!
//! Nothing but the manager under test acts on these objects: owners get no dependents but those that are made here.

use std::time::Duration;

use anyhow::{Result, ensure};
use kcm_e2e_harness::wait;
use serde_json::{Value, json};

use super::objects::reference;
use super::size::Size;
use super::testbed::Testbed;
use super::workload::{LIMIT, Workload};

/// What the managers of these scenarios run.
pub(super) const CONTROLLERS: &str = "garbagecollector,namespace";

/// The dependents of each replica set.
const PODS_EACH: usize = 50;
/// The objects of a chain of owners.
const CHAIN: usize = 10;
/// Both managers read discovery every 30 s.
const DISCOVERED: Duration = Duration::from_secs(40);

const PODS: &str = "/api/v1/namespaces/bench/pods";
const MAPS: &str = "/api/v1/namespaces/bench/configmaps";
const SETS: &str = "/apis/apps/v1/namespaces/bench/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/bench/deployments";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACE: &str = "/api/v1/namespaces/bench";

/// Deployments, each with a replica set of 50 pods, deleted in the background.
pub(super) async fn background(testbed: &mut Testbed, size: Size) -> Result<()> {
    let deployments = testbed.scaled(size.pick(100, 100));
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(deployments, async |number| it.family(number).await).await
        })
        .await?;
    testbed
        .phase("collected", async |it| {
            it.many(deployments, async |number| it.delete(&format!("{DEPLOYMENTS}/web-{number}"), "Background").await)
                .await?;
            it.are_left(SETS, 0).await?;
            it.are_left(PODS, 0).await
        })
        .await
}

/// A namespace with pods, config maps and custom objects.
pub(super) async fn namespace(testbed: &mut Testbed, size: Size) -> Result<()> {
    let [pods, maps, things] = [5_000, 500, 100].map(|count| testbed.scaled(size.pick(count, count)));
    testbed
        .phase("filled", async |it| {
            it.make_namespace("bench").await?;
            it.define(1).await?;
            it.many(pods, async |number| it.post(PODS, &pod(number, None)).await.map(drop)).await?;
            it.many(maps, async |number| it.post(MAPS, &map(number, None, 0)).await.map(drop)).await?;
            it.many(things, async |number| it.thing(0, number).await).await
        })
        .await?;
    testbed
        .phase("removed", async |it| {
            it.delete(NAMESPACE, "Background").await?;
            wait::eventually_within("the namespace to be gone", LIMIT, async || {
                ensure!(it.count("/api/v1/namespaces?fieldSelector=metadata.name%3Dbench").await? == 0, "it is there");
                Ok(())
            })
            .await
        })
        .await
}

/// An owner of many pods, which becomes none.
pub(super) async fn orphans(testbed: &mut Testbed, size: Size) -> Result<()> {
    let pods = testbed.scaled(size.pick(5_000, 5_000));
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            let owner = it.post(SETS, &set(0, None)).await?;
            let owner = reference("apps/v1", "ReplicaSet", "set-0", &owner);
            it.many(pods, async |number| it.post(PODS, &pod(number, Some(&owner))).await.map(drop)).await
        })
        .await?;
    testbed
        .phase("orphaned", async |it| {
            it.delete(&format!("{SETS}/set-0"), "Orphan").await?;
            it.are_left(SETS, 0).await?;
            it.are_left(PODS, pods).await
        })
        .await
}

/// Config maps in chains of owners, of which the first ones are deleted.
pub(super) async fn chains(testbed: &mut Testbed, size: Size) -> Result<()> {
    let chains = testbed.scaled(size.pick(5_000, 20_000)) / CHAIN;
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(chains, async |chain| it.chain(chain).await).await
        })
        .await?;
    testbed
        .phase("collected", async |it| {
            it.many(chains, async |chain| it.delete(&format!("{MAPS}/map-{}", chain * CHAIN), "Background").await)
                .await?;
            it.are_left(MAPS, 0).await
        })
        .await
}

/// A start beside many objects that own each other.
pub(super) async fn restart(testbed: &mut Testbed, size: Size) -> Result<()> {
    let chains = testbed.scaled(size.pick(10_000, 50_000)) / CHAIN;
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(chains, async |chain| it.chain(chain).await).await
        })
        .await?;
    testbed.restart("restarted").await
}

/// Custom resource definitions that come and go.
pub(super) async fn kinds(testbed: &mut Testbed, size: Size) -> Result<()> {
    let kinds = testbed.scaled(size.pick(100, 300));
    testbed
        .phase("installed", async |it| {
            it.define(kinds).await?;
            tokio::time::sleep(DISCOVERED).await;
            Ok(())
        })
        .await?;
    testbed.restart("restarted").await?;
    testbed
        .phase("removed", async |it| {
            it.many(kinds, async |kind| it.delete(&format!("{DEFINITIONS}/{}", plural(kind)), "Background").await)
                .await?;
            tokio::time::sleep(DISCOVERED).await;
            Ok(())
        })
        .await
}

/// Config maps of 100 KB.
pub(super) async fn large_objects(testbed: &mut Testbed, size: Size) -> Result<()> {
    let maps = testbed.scaled(size.pick(500, 2_000));
    testbed
        .phase("without them", async |_| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(())
        })
        .await?;
    testbed
        .phase("with them", async |it| {
            it.make_namespace("bench").await?;
            it.many(maps, async |number| it.post(MAPS, &map(number, None, 100_000)).await.map(drop)).await
        })
        .await?;
    testbed.restart("restarted").await
}

impl Workload {
    /// A deployment with its replica set and pods.
    async fn family(&self, number: usize) -> Result<()> {
        let deployment = json!({
            "metadata": { "name": format!("web-{number}") },
            "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "web" } }, "template": template() },
        });
        let uid = self.post(DEPLOYMENTS, &deployment).await?;
        let owner = reference("apps/v1", "Deployment", &format!("web-{number}"), &uid);
        let uid = self.post(SETS, &set(number, Some(&owner))).await?;
        let owner = reference("apps/v1", "ReplicaSet", &format!("set-{number}"), &uid);
        for at in 0..PODS_EACH {
            self.post(PODS, &pod(number * PODS_EACH + at, Some(&owner))).await?;
        }
        Ok(())
    }

    /// Config maps of which each owns the next.
    async fn chain(&self, chain: usize) -> Result<()> {
        let mut owner: Option<Value> = None;
        for number in chain * CHAIN..(chain + 1) * CHAIN {
            let uid = self.post(MAPS, &map(number, owner.as_ref(), 0)).await?;
            owner = Some(reference("v1", "ConfigMap", &format!("map-{number}"), &uid));
        }
        Ok(())
    }

    /// Custom resource definitions, which are served when it returns.
    async fn define(&self, count: usize) -> Result<()> {
        self.many(count, async |kind| self.post(DEFINITIONS, &definition(kind)).await.map(drop)).await?;
        self.many(count, async |kind| {
            wait::eventually_within("a kind to be served", LIMIT, async || {
                self.count(&format!("/apis/bench.example.com/v1/things{kind}")).await.map(drop)
            })
            .await
        })
        .await
    }

    async fn thing(&self, kind: usize, number: usize) -> Result<()> {
        let thing = json!({
            "apiVersion": "bench.example.com/v1", "kind": format!("Thing{kind}"),
            "metadata": { "name": format!("thing-{number}") },
        });
        self.post(&format!("/apis/bench.example.com/v1/namespaces/bench/things{kind}"), &thing).await.map(drop)
    }
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "schedulerName": "no-scheduler", "containers": [{ "name": "main", "image": "example/main:1" }] },
    })
}

fn owned(mut object: Value, owner: Option<&Value>) -> Value {
    object["metadata"]["ownerReferences"] = owner.into_iter().cloned().collect();
    object
}

fn pod(number: usize, owner: Option<&Value>) -> Value {
    let metadata = json!({ "name": format!("pod-{number}"), "labels": { "app": "web" } });
    owned(json!({ "metadata": metadata, "spec": template()["spec"] }), owner)
}

fn set(number: usize, owner: Option<&Value>) -> Value {
    let set = json!({
        "metadata": { "name": format!("set-{number}") },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "web" } }, "template": template() },
    });
    owned(set, owner)
}

fn map(number: usize, owner: Option<&Value>, bytes: usize) -> Value {
    let map = json!({ "metadata": { "name": format!("map-{number}") }, "data": { "text": "x".repeat(bytes) } });
    owned(map, owner)
}

fn plural(kind: usize) -> String {
    format!("things{kind}.bench.example.com")
}

fn definition(kind: usize) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "metadata": { "name": plural(kind) },
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced",
            "names": { "plural": format!("things{kind}"), "kind": format!("Thing{kind}") },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}
