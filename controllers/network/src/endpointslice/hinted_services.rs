//! The services that have hints by topology, and the shares of the zones that these hints follow.

use std::collections::HashMap;
use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Node;
use kcm_framework::informers::Change;
use parking_lot::Mutex;

use super::hints::allocation::is_overloaded;
use super::hints::topology::ServiceHints;
use super::zones::{Shares, ZoneCpus};

/// The hints by topology of all services.
///
/// No lock is held during a plan, so that a plan of thousands of pods delays neither other services nor the events of
/// nodes.
#[derive(Debug, Default)]
pub(super) struct HintedServices(Mutex<Topology>);

#[derive(Debug, Default)]
struct Topology {
    cpus: ZoneCpus,
    shares: Option<Arc<Shares>>,
    services: HashMap<ObjectKey, ServiceHints>,
}

impl HintedServices {
    /// Event mapping of nodes: follows the change, and returns the services that have too few endpoints in a zone now.
    pub(super) fn node_changed(&self, change: &Change<Node>) -> Vec<ObjectKey> {
        let topology = &mut *self.0.lock();
        if !topology.cpus.follow(change) {
            return Vec::new();
        }
        topology.shares = topology.cpus.shares().map(Arc::new);
        let shares = topology.shares.as_deref();
        let overloaded = topology.services.iter().filter(|(_, hints)| has_overload(hints, shares));
        let mut overloaded: Vec<_> = overloaded.map(|(service, _)| service.clone()).collect();
        overloaded.sort_unstable();
        overloaded
    }

    /// Follows all nodes, before the first service is reconciled: a share that lacks nodes leads to wrong hints.
    pub(super) fn follow_all<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) {
        let topology = &mut *self.0.lock();
        if topology.cpus.replace(nodes) {
            topology.shares = topology.cpus.shares().map(Arc::new);
        }
    }

    /// Returns the shares of the zones, and the hints of a service.
    pub(super) fn get(&self, service: &ObjectKey) -> (Option<Arc<Shares>>, ServiceHints) {
        let topology = self.0.lock();
        (topology.shares.clone(), topology.services.get(service).cloned().unwrap_or_default())
    }

    /// Sets the hints of a service, which follow these shares. Returns whether it has too few endpoints in a zone because the
    /// shares have changed meanwhile.
    pub(super) fn set(&self, service: &ObjectKey, hints: ServiceHints, followed: Option<&Shares>) -> bool {
        let topology = &mut *self.0.lock();
        let shares = topology.shares.as_deref();
        let is_outdated = shares != followed && has_overload(&hints, shares);
        if hints == ServiceHints::default() {
            topology.services.remove(service);
        } else {
            topology.services.insert(service.clone(), hints);
        }
        is_outdated
    }

    /// Forgets a service that was deleted.
    pub(super) fn forget(&self, service: &ObjectKey) {
        self.0.lock().services.remove(service);
    }
}

fn has_overload(hints: &ServiceHints, shares: Option<&Shares>) -> bool {
    hints.families.values().any(|zones| is_overloaded(zones, shares))
}
