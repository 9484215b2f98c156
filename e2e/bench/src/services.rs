//! Services: their pods are made, rolled and deleted, and become endpoints.
//!
//! The benchmark itself makes and replaces the pods, on nodes that it names, so that the managers run nothing but the
//! controllers of endpoints; kwok makes the pods ready.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Result, ensure};
use kcm_e2e_harness::wait;
use serde_json::{Value, json};

use super::endpoint_latency::{Endpoints, Seen};
use super::manifests::template;
use super::size::Size;
use super::testbed::{NODES, Testbed};
use super::workload::{LIMIT, Workload};

/// What the managers run in [`many`].
pub(super) const SLICES: &str = "endpointslice";
/// What the managers run in [`large`].
pub(super) const SLICES_AND_ENDPOINTS: &str = "endpointslice,endpoint";
/// What they send requests about.
pub(super) const REQUESTS: &[&str] = &["endpointslices", "endpoints"];

const SERVICES: &str = "/api/v1/namespaces/bench/services";
const PODS: &str = "/api/v1/namespaces/bench/pods";
/// The pods of each service in [`many`].
const PODS_EACH: usize = 20;
/// The most addresses of an `Endpoints` object.
const CAPACITY: usize = 1_000;

/// Services and their pods.
#[derive(Clone, Copy)]
struct Fleet {
    services: usize,
    /// The pods of all services together. Consecutive ones are of different services, so that all roll at once.
    pods: usize,
    /// Whether the managers write `Endpoints` too.
    has_endpoints: bool,
}

/// Services of 20 pods.
pub(super) async fn many(testbed: &mut Testbed, size: Size) -> Result<()> {
    let services = testbed.scaled(size.pick(100, 1_000));
    play(testbed, Fleet { services, pods: services * PODS_EACH, has_endpoints: false }).await
}

/// One service of many pods.
pub(super) async fn large(testbed: &mut Testbed, size: Size) -> Result<()> {
    let pods = testbed.scaled(size.pick(1_000, 5_000));
    play(testbed, Fleet { services: 1, pods, has_endpoints: true }).await
}

async fn play(testbed: &mut Testbed, fleet: Fleet) -> Result<()> {
    let seen = RefCell::new(Seen::default());
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(fleet.services, async |number| it.post(SERVICES, &service(number)).await.map(drop)).await?;
            let make = it.many(fleet.pods, async |number| it.post(PODS, &fleet.pod(0, number)).await.map(drop));
            it.watch_endpoints(&seen, make, |seen| fleet.is_served(seen)).await?;
            it.endpoints_are_of(fleet, 0).await
        })
        .await?;
    testbed.latencies(&seen.borrow_mut().take_latencies());
    testbed
        .phase("rolled", async |it| {
            let roll = it.many(fleet.pods, async |number| {
                it.post(PODS, &fleet.pod(1, number)).await?;
                it.delete(&format!("{PODS}/{}", name_of(0, number)), "Background").await
            });
            it.watch_endpoints(&seen, roll, |seen| fleet.is_served(seen)).await?;
            it.endpoints_are_of(fleet, 1).await
        })
        .await?;
    testbed.latencies(&seen.borrow_mut().take_latencies());
    testbed
        .phase("deleted", async |it| {
            let delete = async {
                it.many(fleet.pods, async |number| {
                    it.delete(&format!("{PODS}/{}", name_of(1, number)), "Background").await
                })
                .await?;
                it.many(fleet.services, async |number| {
                    it.delete(&format!("{SERVICES}/web-{number}"), "Background").await
                })
                .await
            };
            it.watch_endpoints(&seen, delete, |seen| seen.slices() == 0).await?;
            it.are_left(PODS, 0).await
        })
        .await
}

impl Fleet {
    /// Whether all pods of a generation are ready endpoints, and no others are there.
    fn is_served(self, seen: &Seen) -> bool {
        seen.measured() == self.pods && seen.endpoints() == Endpoints { all: self.pods, ready: self.pods }
    }

    fn pod(self, generation: usize, number: usize) -> Value {
        let mut pod = template(&format!("web-{}", number % self.services));
        pod["metadata"]["name"] = json!(name_of(generation, number));
        pod["spec"]["nodeName"] = json!(format!("node-{}", 1 + number % NODES));
        pod
    }
}

impl Workload {
    /// Waits until the `Endpoints` of the one service, if the managers write them, have the pods of a generation.
    async fn endpoints_are_of(&self, fleet: Fleet, generation: usize) -> Result<()> {
        if !fleet.has_endpoints {
            return Ok(());
        }
        let expected = fleet.pods.min(CAPACITY);
        wait::eventually_within("the endpoints to have the pods", LIMIT, async || {
            // By a list, so that a GET is one of the manager.
            let list = self.get("/api/v1/namespaces/bench/endpoints").await?.unwrap_or_default();
            let subsets = list["items"][0]["subsets"].as_array().into_iter().flatten();
            let addresses: Vec<&Value> = subsets.filter_map(|it| it["addresses"].as_array()).flatten().collect();
            let prefix = name_of(generation, 0).trim_end_matches('0').to_owned();
            let is_of = |it: &&&Value| it["targetRef"]["name"].as_str().is_some_and(|name| name.starts_with(&prefix));
            let found = (addresses.len(), addresses.iter().filter(is_of).count());
            if found != (expected, expected) {
                // A large object costs the API server CPU time, and it shares the cores with the manager.
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            ensure!(found == (expected, expected), "of {} addresses, {} are theirs", found.0, found.1);
            Ok(())
        })
        .await
    }
}

fn name_of(generation: usize, number: usize) -> String {
    format!("pod-{}-{number}", if generation == 0 { "a" } else { "b" })
}

fn service(number: usize) -> Value {
    let name = format!("web-{number}");
    let ports = json!([{ "name": "http", "port": 80, "targetPort": 8080 }]);
    json!({ "metadata": { "name": name }, "spec": { "selector": { "app": name }, "ports": ports } })
}
