//! Event mapping: the services that a change of a slice enqueues.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::EndpointSlice;
use kcm_framework::informers::Change;

use super::MANAGED_BY;
use crate::shared::slices::{self, OwnWrites};

/// Minimum delay of a change of a slice by another client, so that further changes are reconciled with it.
const MIN_DELAY: Duration = Duration::from_secs(1);

/// A change of a slice by another client enqueues its service, after `batch_period` or a second.
pub(super) fn keys_for_slice(
    change: &Change<EndpointSlice>,
    own_writes: &OwnWrites,
    batch_period: Duration,
) -> impl Iterator<Item = Enqueue<ObjectKey>> + use<> {
    let services = slices::keys_for_slice(change, MANAGED_BY, own_writes).into_iter();
    services.map(move |service| Enqueue::after(service, batch_period.max(MIN_DELAY)))
}
