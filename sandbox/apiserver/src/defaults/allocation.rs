//! Addresses and ports of services. Pure.
//!
//! # Upstream
//! The allocators of `pkg/registry/core/service`

use std::collections::{BTreeMap, BTreeSet};

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::json::{self, at, list, set, text};
use crate::kinds::Kind;
use crate::random::Random;
use crate::status::{FieldError, Status};
use crate::store::storage::{EventKind, Store};

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");

/// Services get addresses of `10.0.0.0/24`, without the first one, which belongs to the API server.
const NETWORK: &str = "10.0.0.";
/// Addresses below are kept for services that name one, as long as others are free.
const FIRST_FREE: u64 = 17;
const LAST: u64 = 254;
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

/// The addresses and node ports of the stored services.
///
/// Each write of a service is read once, so that a new service costs the same however many there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allocations {
    /// The version of the store up to which writes are read.
    version: u64,
    services: BTreeMap<ObjectKey, Allocated>,
    /// Number of services by address.
    addresses: BTreeMap<String, usize>,
    /// Number of services by port.
    ports: BTreeMap<u64, usize>,
}

/// The address and ports of one service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Allocated {
    address: Option<String>,
    ports: BTreeSet<u64>,
}

impl Allocated {
    fn of(service: &Value) -> Self {
        let address = text(service, &["spec", "clusterIP"]).filter(|address| !matches!(*address, "" | "None"));
        let ports = list(service, &["spec", "ports"]).iter().filter_map(port_of);
        let health = at(service, &["spec", "healthCheckNodePort"]).and_then(Value::as_u64);
        Self { address: address.map(str::to_owned), ports: ports.chain(health).collect() }
    }
}

impl Allocations {
    /// Gives a service the addresses and ports that it needs, or refuses those that it may not have.
    pub(crate) fn allocate(
        &mut self,
        store: &Store,
        random: &mut Random,
        kind: &Kind,
        service: &mut Value,
    ) -> Result<(), Status> {
        if kind.resource != SERVICES {
            return Ok(());
        }
        let of_type = text(service, &["spec", "type"]).unwrap_or_default().to_owned();
        if of_type == "ExternalName" {
            return Ok(());
        }
        self.read(store);
        let namespace = text(service, &["metadata", "namespace"]);
        let others =
            Others { all: self, own: self.services.get(&json::key_of(&SERVICES, namespace, json::name(service))) };
        let mut errors = Vec::new();
        address(&others, random, service, &mut errors);
        if of_type == "NodePort"
            || (of_type == "LoadBalancer"
                && at(service, &["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false)))
        {
            node_ports(&others, random, service, &mut errors);
        }
        if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", "Service", json::name(service), &errors)) }
    }

    /// Reads the writes of services since the last call; all services, if those writes are no longer kept.
    fn read(&mut self, store: &Store) {
        if let Ok(events) = store.events_of(&SERVICES, self.version) {
            for event in events {
                let written = (event.kind != EventKind::Deleted).then(|| Allocated::of(&event.object.value()));
                self.set(&event.key, written);
            }
        } else {
            *self = Self::default();
            for (key, service) in store.list(&SERVICES, None) {
                self.set(key, Some(Allocated::of(&service.value())));
            }
        }
        self.version = store.version();
    }

    fn set(&mut self, key: &ObjectKey, allocated: Option<Allocated>) {
        if let Some(before) = self.services.remove(key) {
            before.address.iter().for_each(|address| release(&mut self.addresses, address));
            before.ports.iter().for_each(|port| release(&mut self.ports, port));
        }
        if let Some(allocated) = allocated {
            allocated.address.iter().for_each(|address| *self.addresses.entry(address.clone()).or_default() += 1);
            allocated.ports.iter().for_each(|port| *self.ports.entry(*port).or_default() += 1);
            self.services.insert(key.clone(), allocated);
        }
    }
}

fn release<T: Ord>(holders: &mut BTreeMap<T, usize>, held: &T) {
    if let Some(count) = holders.get_mut(held) {
        *count -= 1;
        if *count == 0 {
            holders.remove(held);
        }
    }
}

/// The allocations of all services but one.
struct Others<'a> {
    all: &'a Allocations,
    own: Option<&'a Allocated>,
}

impl Others<'_> {
    fn have_address(&self, address: &str) -> bool {
        let own = self.own.is_some_and(|own| own.address.as_deref() == Some(address));
        self.all.addresses.get(address).is_some_and(|count| *count > usize::from(own))
    }

    fn have_port(&self, port: u64) -> bool {
        let own = self.own.is_some_and(|own| own.ports.contains(&port));
        self.all.ports.get(&port).is_some_and(|count| *count > usize::from(own))
    }
}

fn port_of(port: &Value) -> Option<u64> {
    at(port, &["nodePort"]).and_then(Value::as_u64)
}

fn address(others: &Others<'_>, random: &mut Random, service: &mut Value, errors: &mut Vec<FieldError>) {
    let wanted = text(service, &["spec", "clusterIP"]).unwrap_or_default();
    let address = match wanted {
        "" => {
            let count = LAST - FIRST_FREE + 1;
            let start = random.below(count);
            let upper = (0..count).map(|step| FIRST_FREE + (start + step) % count);
            upper.chain(2..FIRST_FREE).map(|last| format!("{NETWORK}{last}")).find(|free| !others.have_address(free))
        }
        "None" => Some("None".to_owned()),
        given => {
            let refuse = |why: String| {
                FieldError::invalid("spec.clusterIPs", json!([given]), format!("failed to allocate IP {given}: {why}"))
            };
            let last = given.strip_prefix(NETWORK).and_then(|last| last.parse::<u64>().ok());
            if last.is_none_or(|last| !(1..=LAST).contains(&last)) {
                errors.push(refuse("the provided network does not match the current range".to_owned()));
            } else if others.have_address(given) {
                errors.push(refuse("provided IP is already allocated".to_owned()));
            }
            Some(given.to_owned())
        }
    };
    // The list may have an address of another family beside it.
    let Some(address) = address else { return };
    if list(service, &["spec", "clusterIPs"]).is_empty() {
        set(service, &["spec", "clusterIPs"], Some(json!([address])));
    }
    set(service, &["spec", "clusterIP"], Some(address.into()));
}

fn node_ports(others: &Others<'_>, random: &mut Random, service: &mut Value, errors: &mut Vec<FieldError>) {
    for (index, port) in list(service, &["spec", "ports"]).iter().enumerate() {
        let Some(number) = port_of(port) else { continue };
        let field = format!("spec.ports[{index}].nodePort");
        if !NODE_PORTS.contains(&number) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            errors.push(FieldError::invalid(
                field,
                number,
                format!("provided port is not in the valid range. The range of valid ports is {first}-{last}"),
            ));
        } else if others.have_port(number) {
            errors.push(FieldError::invalid(field, number, "provided port is already allocated"));
        }
    }
    let mut taken: BTreeSet<u64> = list(service, &["spec", "ports"]).iter().filter_map(port_of).collect();
    let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let mut is_full = false;
    let mut next = |taken: &mut BTreeSet<u64>| {
        if is_full {
            return None;
        }
        let start = random.below(count);
        let free = (0..count)
            .map(|step| NODE_PORTS.start() + (start + step) % count)
            .find(|free| !taken.contains(free) && !others.have_port(*free));
        taken.extend(free);
        is_full = free.is_none();
        free
    };
    for port in super::items(service, &["spec", "ports"]) {
        if port_of(port).is_none() {
            set(port, &["nodePort"], next(&mut taken).map(Into::into));
        }
    }
    let is_local = text(service, &["spec", "type"]) == Some("LoadBalancer")
        && text(service, &["spec", "externalTrafficPolicy"]) == Some("Local");
    if is_local && at(service, &["spec", "healthCheckNodePort"]).is_none() {
        set(service, &["spec", "healthCheckNodePort"], next(&mut taken).map(Into::into));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kinds::Kinds;

    fn put(store: &mut Store, name: &str, spec: &Value) {
        let service = json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec });
        store.put(&SERVICES, ObjectKey::namespaced("default", name), service, Duration::ZERO);
    }

    /// The address and the first node port that a new service of that name gets.
    fn allocated(allocations: &mut Allocations, store: &Store, name: &str) -> (String, u64) {
        let kinds = Kinds::built_in(false);
        let kind = kinds.get(&SERVICES).unwrap();
        let mut service = json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "type": "NodePort", "ports": [{ "port": 80 }] },
        });
        allocations.allocate(store, &mut Random::new(1), kind, &mut service).unwrap();
        let address = text(&service, &["spec", "clusterIP"]).unwrap().to_owned();
        (address, list(&service, &["spec", "ports"]).iter().find_map(port_of).unwrap())
    }

    #[test]
    fn what_a_service_has_is_free_again_when_it_is_deleted_or_changed() {
        let (mut allocations, mut store) = (Allocations::default(), Store::new(100));
        // The same seed asks for the same address and port first.
        let first = allocated(&mut allocations, &store, "a");
        put(&mut store, "a", &json!({ "clusterIP": first.0, "ports": [{ "nodePort": first.1 }] }));
        assert_eq!(allocated(&mut allocations, &store, "a"), first, "a service keeps what it has");
        let second = allocated(&mut allocations, &store, "b");
        assert!(second.0 != first.0 && second.1 != first.1, "{second:?}");
        put(&mut store, "a", &json!({ "clusterIP": "None", "healthCheckNodePort": first.1 }));
        assert_eq!(allocated(&mut allocations, &store, "b"), (first.0.clone(), second.1));
        store.remove(&SERVICES, &ObjectKey::namespaced("default", "a"), Duration::ZERO);
        assert_eq!(allocated(&mut allocations, &store, "b"), first);
    }

    #[test]
    fn services_are_read_again_where_their_writes_are_no_longer_kept() {
        let (mut allocations, mut store) = (Allocations::default(), Store::new(100));
        let first = allocated(&mut allocations, &store, "a");
        put(&mut store, "a", &json!({ "clusterIP": first.0, "ports": [{ "nodePort": first.1 }] }));
        put(&mut store, "gone", &json!({ "clusterIP": "10.0.0.99" }));
        store.remove(&SERVICES, &ObjectKey::namespaced("default", "gone"), Duration::ZERO);
        store.compact();
        let second = allocated(&mut allocations, &store, "b");
        assert!(second.0 != first.0 && second.1 != first.1, "{second:?}");
        assert_eq!(allocations.services.len(), 1);
    }
}
