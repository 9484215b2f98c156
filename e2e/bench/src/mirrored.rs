//! Services without selector, whose `Endpoints` a person writes, changes and deletes with the service.
//!
//! The addresses lead nowhere: nothing but the benchmark and the managers acts on these objects.

use std::cell::RefCell;
use std::net::Ipv4Addr;

use anyhow::Result;
use serde_json::{Value, json};

use super::endpoint_latency::{Endpoints, Seen};
use super::size::Size;
use super::testbed::Testbed;

/// What the managers run.
pub(super) const CONTROLLERS: &str = "endpointslice-mirroring-controller";
/// What they send requests about.
pub(super) const REQUESTS: &[&str] = &["endpointslices"];

const SERVICES: &str = "/api/v1/namespaces/bench/services";
const ENDPOINTS: &str = "/api/v1/namespaces/bench/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";
/// The addresses of each service.
const ADDRESSES_EACH: u32 = 20;

/// Services of 20 addresses.
pub(super) async fn many(testbed: &mut Testbed, size: Size) -> Result<()> {
    let services = testbed.scaled(size.pick(100, 1_000));
    let all = services * ADDRESSES_EACH as usize;
    let are_mirrored = |seen: &Seen| seen.measured() == all && seen.endpoints() == Endpoints { all, ready: all };
    let seen = RefCell::new(Seen::default());
    testbed
        .phase("made", async |it| {
            it.make_namespace("bench").await?;
            it.many(services, async |number| it.post(SERVICES, &service(number)).await.map(drop)).await?;
            let make = it.many(services, async |number| {
                let mut endpoints = json!({ "metadata": { "name": name_of(number) } });
                endpoints["subsets"] = subsets(0, number)?;
                it.post(ENDPOINTS, &endpoints).await.map(drop)
            });
            it.watch_mirrored(&seen, make, are_mirrored).await
        })
        .await?;
    testbed.latencies(&seen.borrow_mut().take_latencies());
    testbed
        .phase("changed", async |it| {
            let change = it.many(services, async |number| {
                let subsets = json!({ "subsets": subsets(1, number)? });
                it.merge(&format!("{ENDPOINTS}/{}", name_of(number)), &subsets).await
            });
            it.watch_mirrored(&seen, change, are_mirrored).await
        })
        .await?;
    testbed.latencies(&seen.borrow_mut().take_latencies());
    testbed
        .phase("deleted", async |it| {
            // The API server deletes the `Endpoints` with their service.
            it.many(services, async |number| it.delete(&format!("{SERVICES}/{}", name_of(number)), "Background").await)
                .await?;
            it.are_left(SLICES, 0).await
        })
        .await
}

fn name_of(number: usize) -> String {
    format!("web-{number}")
}

fn service(number: usize) -> Value {
    let ports = json!([{ "name": "http", "port": 80, "targetPort": 8080 }]);
    json!({ "metadata": { "name": name_of(number) }, "spec": { "ports": ports } })
}

/// The addresses of a service in a generation, which no other service or generation has.
fn subsets(generation: u8, number: usize) -> Result<Value> {
    let first = u32::from(Ipv4Addr::new(10 + generation, 0, 0, 1)) + u32::try_from(number)? * ADDRESSES_EACH;
    let addresses = (first..first + ADDRESSES_EACH).map(|ip| json!({ "ip": Ipv4Addr::from(ip) }));
    let addresses: Vec<Value> = addresses.collect();
    Ok(json!([{ "addresses": addresses, "ports": [{ "name": "http", "port": 8080 }] }]))
}
