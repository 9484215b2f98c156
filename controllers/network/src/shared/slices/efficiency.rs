//! Numbers of endpoints and slices, for metrics.

use std::collections::HashMap;

use kcm_framework::api::ObjectKey;

/// Endpoints and slices of one service, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Efficiency {
    /// Number of desired endpoints.
    pub(crate) endpoints: i64,
    /// Number of slices.
    pub(crate) slices: i64,
    /// Number of slices that would be enough if all were full.
    pub(crate) desired_slices: i64,
}

impl Efficiency {
    /// The numbers of one set of ports.
    pub(crate) fn of_ports(endpoints: usize, slices: usize, max: usize) -> Self {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            endpoints: whole(endpoints),
            slices: whole(slices),
            desired_slices: whole(endpoints.div_ceil(max.max(1))),
        }
    }

    /// The sum of both.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            endpoints: self.endpoints + other.endpoints,
            slices: self.slices + other.slices,
            desired_slices: self.desired_slices + other.desired_slices,
        }
    }

    const fn minus(self, other: Self) -> Self {
        Self {
            endpoints: self.endpoints - other.endpoints,
            slices: self.slices - other.slices,
            desired_slices: self.desired_slices - other.desired_slices,
        }
    }
}

/// The sums over all services, or over all endpoints.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    services: HashMap<ObjectKey, Efficiency>,
    sum: Efficiency,
}

impl Totals {
    /// Sets the numbers of a service; returns the new sum.
    pub(crate) fn set(&mut self, service: &ObjectKey, of_service: Efficiency) -> Efficiency {
        let before = self.services.insert(service.clone(), of_service).unwrap_or_default();
        self.sum = self.sum.plus(of_service).minus(before);
        self.sum
    }

    /// Removes a service; returns the new sum if it was known.
    pub(crate) fn remove(&mut self, service: &ObjectKey) -> Option<Efficiency> {
        self.sum = self.sum.minus(self.services.remove(service)?);
        Some(self.sum)
    }
}
