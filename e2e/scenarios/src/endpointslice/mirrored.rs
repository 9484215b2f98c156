//! One manager replaces another while a person replaces the addresses of endpoints that are mirrored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::discovery::v1 as discoveryv1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::takeover::end;
use super::published::Published;
use super::{apply, service};

/// How many addresses the endpoints have.
const ADDRESSES: u16 = 240;
/// How many of them each step replaces.
const REPLACED: u16 = 20;
const STEPS: u16 = ADDRESSES / REPLACED;
/// The steps in which a manager ends. The next one starts in the step after it.
const ENDS_IN: [u16; 2] = [4, 8];
/// The ports of the two subsets, by their names.
const PORTS: [(&str, u16); 2] = [("http", 8080), ("metrics", 9090)];
/// Both families at the first port, one at the second.
const SLICES: usize = 3;

/// From the peer to ours and back: no slice is created, renamed or deleted, and an address leaves the slices only with the
/// endpoints.
pub(super) async fn is_handed_over_amid_changes(case: Case) -> Result<()> {
    let slices: Api<discoveryv1::EndpointSlice> = case.api();
    apply(&Kubectl::of(&case), &service("plain", &json!({ "selector": null }))).await?;
    let endpoints = json!({ "metadata": { "name": "plain" }, "subsets": subsets(&there_in(0)) });
    let endpoints: corev1::Endpoints = serde_json::from_value(endpoints)?;
    case.api().create(&PostParams::default(), &endpoints).await.context("cannot create the endpoints")?;
    Published::watch(&slices, async |published| change(&case, published).await).await
}

async fn change(case: &Case, published: &Published) -> Result<()> {
    let endpoints: Api<corev1::Endpoints> = case.api();
    let mut manager = case.start(Subject::Peer, &[])?;
    published.has_only(there_in(0).map(address)).await?;
    published.keep(SLICES)?;
    let mut managers = [Subject::Ours, Subject::Peer].into_iter();
    for step in 1..=STEPS {
        let there = there_in(step);
        published.may_leave((there.start - REPLACED..there.start).map(address));
        let patch = Patch::Merge(json!({ "subsets": subsets(&there) }));
        endpoints.patch("plain", &PatchParams::default(), &patch).await.context("cannot replace addresses")?;
        if ENDS_IN.contains(&step) {
            end(&mut manager).await?;
            continue;
        }
        if ENDS_IN.contains(&(step - 1)) {
            // It has a step to mirror, however fast the last one was.
            manager = case.start(managers.next().context("there are two")?, &[])?;
        }
        published.has_only(there.map(address)).await.with_context(|| format!("in step {step}"))?;
    }
    manager.must_run()
}

/// The addresses that the endpoints have after a step, by numbers.
fn there_in(step: u16) -> Range<u16> {
    step * REPLACED..step * REPLACED + ADDRESSES
}

/// One in three is at the second port, one in three of the second family.
fn address(number: u16) -> SocketAddr {
    let [high, low] = number.to_be_bytes();
    let [(_, first), (_, second)] = PORTS;
    let (ip, port) = match number % 3 {
        0 => (IpAddr::from(Ipv4Addr::new(10, 9, high, low)), first),
        1 => (IpAddr::from(Ipv4Addr::new(10, 9, high, low)), second),
        _two => (IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 9, number)), first),
    };
    SocketAddr::new(ip, port)
}

fn subsets(numbers: &Range<u16>) -> Value {
    let subset = |(name, port): (&str, u16)| {
        let addresses = numbers.clone().map(address).filter(|address| address.port() == port);
        let addresses: Vec<Value> = addresses.map(|address| json!({ "ip": address.ip().to_string() })).collect();
        json!({ "addresses": addresses, "ports": [{ "name": name, "port": port }] })
    };
    json!(PORTS.map(subset))
}
