//! What a watch shows of the addresses that a service publishes, and what must hold of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::discovery::v1 as discoveryv1;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::Api;
use serde::de::DeserializeOwned;

use super::super::deployment::watch::{follow, now};

pub(super) type Addresses = BTreeSet<SocketAddr>;

/// An object with addresses of a service.
pub(super) trait Publishes: Clone + Debug + DeserializeOwned + kube::Resource {
    /// The addresses that are ready, each with each of its ports.
    fn ready(&self) -> Result<Addresses>;
}

impl Publishes for discoveryv1::EndpointSlice {
    fn ready(&self) -> Result<Addresses> {
        let mut ready = Addresses::new();
        let ports: Vec<i32> = self.ports.iter().flatten().filter_map(|port| port.port).collect();
        for endpoint in self.endpoints.iter().flatten() {
            if endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true)) {
                insert(&mut ready, endpoint.addresses.iter().map(String::as_str), &ports)?;
            }
        }
        Ok(ready)
    }
}

impl Publishes for corev1::Endpoints {
    fn ready(&self) -> Result<Addresses> {
        let mut ready = Addresses::new();
        for subset in self.subsets.iter().flatten() {
            let ports: Vec<i32> = subset.ports.iter().flatten().map(|port| port.port).collect();
            insert(&mut ready, subset.addresses.iter().flatten().map(|address| address.ip.as_str()), &ports)?;
        }
        Ok(ready)
    }
}

fn insert<'a>(into: &mut Addresses, ips: impl Iterator<Item = &'a str>, ports: &[i32]) -> Result<()> {
    for ip in ips {
        let parsed = ip.parse().with_context(|| format!("{ip} is no IP address"))?;
        for &port in ports {
            let port = u16::try_from(port).with_context(|| format!("{port} is no port"))?;
            into.insert(SocketAddr::new(parsed, port));
        }
    }
    Ok(())
}

/// What is published, as a watch shows it.
#[derive(Default)]
pub(super) struct Published(RefCell<Seen>);

impl Published {
    /// Watches objects until `work` ends, or the watch shows what must not be.
    pub(super) async fn watch<K: Publishes>(api: &Api<K>, work: impl AsyncFnOnce(&Self) -> Result<()>) -> Result<()> {
        let published = Self::default();
        let see = |object: &K, gone| {
            let ready = if gone { None } else { Some(object.ready()?) };
            published.0.borrow_mut().see(object.name_any(), ready)
        };
        let since = now(api).await?;
        tokio::select! {
            biased;
            broken = follow(api, since, see) => broken,
            done = work(&published) => done,
        }
    }

    /// From now on the objects are those that there are, which are so many, and an address leaves only where it may.
    pub(super) fn keep(&self, objects: usize) -> Result<()> {
        let mut seen = self.0.borrow_mut();
        seen.is_kept = true;
        ensure!(seen.objects.len() == objects, "there are {} objects, not {objects}", seen.objects.len());
        Ok(())
    }

    pub(super) fn may_leave(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        self.0.borrow_mut().may_leave.extend(addresses);
    }

    /// Waits until these addresses are published.
    pub(super) async fn has(&self, addresses: impl IntoIterator<Item = SocketAddr>) -> Result<()> {
        let addresses: Addresses = addresses.into_iter().collect();
        eventually("addresses to be published", async || {
            let seen = self.0.borrow();
            let missing = addresses.iter().filter(|address| !seen.ready.contains_key(address)).count();
            ensure!(missing == 0, "{missing} of {} are missing", addresses.len());
            Ok(())
        })
        .await
    }

    /// Waits until these addresses are published, and no others.
    pub(super) async fn has_only(&self, addresses: impl IntoIterator<Item = SocketAddr>) -> Result<()> {
        let addresses: Addresses = addresses.into_iter().collect();
        self.has(addresses.iter().copied()).await?;
        eventually("other addresses to leave", async || {
            let others = self.0.borrow().ready.keys().filter(|address| !addresses.contains(address)).count();
            ensure!(others == 0, "there are {others}");
            Ok(())
        })
        .await
    }
}

#[derive(Default)]
struct Seen {
    /// The ready addresses by object.
    objects: BTreeMap<String, Addresses>,
    /// In how many objects each ready address is.
    ready: BTreeMap<SocketAddr, usize>,
    may_leave: Addresses,
    left: Addresses,
    is_kept: bool,
}

impl Seen {
    /// An object has these addresses now, or was deleted.
    fn see(&mut self, name: String, addresses: Option<Addresses>) -> Result<()> {
        let is_gone = addresses.is_none();
        ensure!(
            !self.is_kept || (!is_gone && self.objects.contains_key(&name)),
            "{name} came or went: gone is {is_gone}"
        );
        let now = addresses.unwrap_or_default();
        let before = self.objects.remove(&name).unwrap_or_default();
        for address in now.difference(&before) {
            ensure!(!self.left.contains(address), "{address} has left and returns");
            *self.ready.entry(*address).or_default() += 1;
        }
        for address in before.difference(&now) {
            let objects = self.ready.get_mut(address).context("it is in the object")?;
            *objects -= 1;
            if *objects == 0 {
                ensure!(!self.is_kept || self.may_leave.contains(address), "{address} leaves too early");
                self.ready.remove(address);
                self.left.insert(*address);
            }
        }
        if !is_gone {
            self.objects.insert(name, now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use anyhow::Result;
    use k8s_openapi::api::core::v1 as corev1;
    use k8s_openapi::api::discovery::v1 as discoveryv1;
    use serde_json::json;

    use super::{Addresses, Published, Publishes};

    fn address(number: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, number], 80))
    }

    fn see(published: &Published, name: &str, numbers: &[u8]) -> Result<()> {
        let addresses = numbers.iter().copied().map(address).collect();
        published.0.borrow_mut().see(name.to_owned(), Some(addresses))
    }

    /// `a` has the first two addresses and `b` the third; the first may leave.
    fn kept() -> Published {
        let published = Published::default();
        see(&published, "a", &[1, 2]).expect("there was none before");
        see(&published, "b", &[3]).expect("there was none before");
        published.keep(2).expect("there are two");
        published.may_leave([address(1)]);
        published
    }

    #[test]
    fn addresses_that_come_move_and_leave_where_they_may_are_accepted() {
        let published = kept();
        see(&published, "a", &[1, 2, 4]).expect("one more");
        see(&published, "b", &[2, 3]).expect("it is in both");
        see(&published, "a", &[4]).expect("one may leave, the other has moved");
    }

    #[test]
    fn everything_else_is_refused() {
        let published = kept();
        see(&published, "a", &[2]).expect("it may leave");
        assert!(see(&published, "a", &[1, 2]).is_err(), "it returns");
        assert!(see(&kept(), "a", &[1]).is_err(), "it may not leave");
        assert!(see(&kept(), "c", &[]).is_err(), "one more object");
        assert!(kept().0.borrow_mut().see("b".to_owned(), None).is_err(), "an object is deleted");
        assert!(kept().keep(1).is_err(), "there are two");
    }

    #[test]
    fn ready_addresses_are_read_with_their_ports() {
        let endpoint = |ip: &str, ready: bool| json!({ "addresses": [ip], "conditions": { "ready": ready } });
        let slice: discoveryv1::EndpointSlice = serde_json::from_value(json!({
            "metadata": { "name": "a" },
            "addressType": "IPv6",
            "endpoints": [endpoint("fd00::1", true), endpoint("fd00::2", false)],
            "ports": [{ "port": 80 }, { "port": 443 }],
        }))
        .expect("a slice");
        let expected = ["[fd00::1]:80", "[fd00::1]:443"].map(|it| it.parse().expect("an address"));
        assert_eq!(slice.ready().expect("it has addresses"), Addresses::from(expected));

        let endpoints: corev1::Endpoints = serde_json::from_value(json!({
            "metadata": { "name": "a" },
            "subsets": [
                { "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80 }] },
                { "addresses": [{ "ip": "10.0.0.2" }], "notReadyAddresses": [{ "ip": "10.0.0.3" }], "ports": [{ "port": 80 }] },
            ],
        }))
        .expect("endpoints");
        assert_eq!(endpoints.ready().expect("they have addresses"), Addresses::from([1, 2].map(address)));
    }
}
