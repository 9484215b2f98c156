//! Code that the controllers of endpoints and of endpoint slices share: the pods that a service selects, the services that
//! a change of a pod enqueues, the ports and the addresses that a pod has for a service, and the time of the change that
//! led to a write.

pub(crate) mod batching;
pub(crate) mod deep_hash;
pub(crate) mod pods;
pub(crate) mod ports;
pub(crate) mod services;
pub(crate) mod slices;
pub(crate) mod subsets;
pub(crate) mod trigger_time;

#[cfg(test)]
pub(crate) mod tests;

use kcm_framework::api::Labels;

/// Whether a selector of a service selects an object with these labels. An empty selector selects nothing.
fn selects(selector: &Labels, labels: &Labels) -> bool {
    !selector.is_empty() && selector.iter().all(|(name, value)| labels.get(name) == Some(value))
}
