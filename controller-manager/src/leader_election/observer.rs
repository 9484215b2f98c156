//! The watch of the lease: a standby learns at once that the lease is free.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::{Change, Factory, HandlerOptions, Informer, ListOptions};
use tokio::sync::watch;

use super::lease_object::LeaseObject;

/// Watches one lease. The informer is returned with the receiver, as the watch ends with its last user.
pub(crate) fn watch_lease(
    factory: &Factory,
    lease: &ObjectKey,
) -> (Informer<LeaseObject>, watch::Receiver<Option<Arc<LeaseObject>>>) {
    let options = ListOptions {
        namespace: lease.namespace().map(str::to_owned),
        field_selector: Some(format!("metadata.name={}", lease.name())),
        ..ListOptions::default()
    };
    let informer = factory.informer::<LeaseObject>(options);
    let (sender, receiver) = watch::channel(None);
    informer.add_event_handler(HandlerOptions::named("leader-election"), move |change, _| {
        match change {
            Change::Added(lease) | Change::Updated { new: lease, .. } => drop(sender.send(Some(Arc::clone(lease)))),
            // The next attempt creates it.
            Change::Undecodable { .. } | Change::Deleted { .. } => {}
        }
    });
    (informer, receiver)
}
