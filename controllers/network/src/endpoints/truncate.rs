//! Truncation: endpoints have at most 1,000 addresses.

use crate::shared::subsets::{Address, Subset};

/// Maximum number of addresses.
pub(super) const CAPACITY: usize = 1000;

/// Removes the addresses beyond the capacity: addresses that are not ready first, and from each subset in proportion to its
/// size. Returns whether there were any.
///
/// The share of a subset is rounded up, and the last subsets get the rest. For example, of 500, 500 and 500 ready addresses
/// 334, 334 and 332 stay.
///
/// # Upstream
/// `truncateEndpoints`
pub(super) fn truncate(subsets: &mut [Subset]) -> bool {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let not_ready: usize = subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    if ready + not_ready <= CAPACITY {
        return false;
    }
    if ready > CAPACITY {
        for subset in &mut *subsets {
            subset.not_ready_addresses.clear();
        }
        truncate_lists(subsets.iter_mut().map(|subset| &mut subset.addresses), ready, CAPACITY);
    } else {
        let lists = subsets.iter_mut().map(|subset| &mut subset.not_ready_addresses);
        truncate_lists(lists, not_ready, CAPACITY - ready);
    }
    true
}

/// Truncates lists with `total` addresses to `capacity` of them.
fn truncate_lists<'a>(lists: impl Iterator<Item = &'a mut Vec<Address>>, total: usize, capacity: usize) {
    let mut left = capacity;
    for list in lists {
        list.truncate(share_of(list.len(), total, capacity).min(left));
        left -= list.len();
    }
}

/// The share of the capacity that a list of `length` gets, rounded up.
///
/// As upstream, it computes in floating point: after a handover, another rounding would truncate differently.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of addresses are small and not negative"
)]
fn share_of(length: usize, total: usize, capacity: usize) -> usize {
    (length as f64 / total as f64 * capacity as f64).ceil() as usize
}
