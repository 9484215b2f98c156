//! The distribution of endpoints over slices.

use std::cmp::Reverse;
use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;

use crate::shared::slices::{Draft, Endpoint, EndpointPort, ExistingSlice, matches};

/// The plan for the slices of one family and one set of ports.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub(super) create: Vec<Draft>,
    pub(super) update: Vec<Draft>,
    /// Slices that have lost all their endpoints.
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    pub(super) unchanged: Vec<ExistingSlice>,
    /// Number of endpoints that no slice had.
    pub(super) added: usize,
    /// Number of endpoints of slices that are not desired any more.
    pub(super) removed: usize,
}

/// Places the desired endpoints in existing and new slices. No slice gets more than `max` endpoints; a larger slice keeps
/// its endpoints.
///
/// 1. Endpoints stay in their slices. Endpoints that are not desired are removed.
/// 2. The slices that change anyway are filled, the fullest first.
/// 3. All other endpoints go to the fullest slice that has room for them, or to new slices.
///
/// For example, with 3 at most: `[a b c]`, `[d]` and desired `b c d e f` become `[b c e]` and `[d f]`: `e` fills the slice
/// that loses `a`, and `f` fits into the other.
///
/// # Upstream
/// `reconcileByPortMapping`
pub(super) fn place(
    existing: Vec<ExistingSlice>,
    desired: Vec<Endpoint>,
    ports: &[EndpointPort],
    has_labels: impl Fn(&EndpointSlice) -> bool,
    max: usize,
) -> Placement {
    let matches = matches(&existing, &desired);
    let mut desired: Vec<Option<Endpoint>> = desired.into_iter().map(Some).collect();
    let mut placement = Placement::default();
    for (slice, places) in existing.into_iter().zip(matches) {
        let mut is_updated = false;
        let mut kept = Vec::with_capacity(slice.endpoints.len());
        for (endpoint, place) in slice.endpoints.iter().zip(places) {
            let Some(wanted) = place.and_then(|place| desired[place].take()) else { continue };
            is_updated |= !wanted.is_unchanged(endpoint);
            kept.push(wanted);
        }
        let lost = slice.endpoints.len() - kept.len();
        placement.removed += lost;
        if is_updated || lost > 0 {
            if kept.is_empty() {
                placement.delete.push(slice.object);
            } else {
                placement.update.push(Draft::update(slice.object, kept));
            }
        } else if has_labels(&slice.object) {
            placement.unchanged.push(slice);
        } else {
            placement.update.push(slice.into());
        }
    }

    let mut rest: Vec<Endpoint> = desired.into_iter().flatten().collect();
    placement.added = rest.len();
    // Endpoints are taken from the end.
    rest.reverse();
    placement.update.sort_by_key(|draft| Reverse(draft.endpoints.len()));
    for draft in &mut placement.update {
        fill(draft, &mut rest, max);
    }
    while !rest.is_empty() {
        let room = (rest.len() < max).then(|| slice_with_room(&placement.unchanged, rest.len(), max)).flatten();
        if let Some(at) = room {
            let mut draft = Draft::from(placement.unchanged.remove(at));
            fill(&mut draft, &mut rest, max);
            placement.update.push(draft);
        } else {
            let mut draft = Draft::new(ports.to_vec(), Vec::new());
            fill(&mut draft, &mut rest, max);
            placement.create.push(draft);
        }
    }
    placement
}

fn fill(draft: &mut Draft, rest: &mut Vec<Endpoint>, max: usize) {
    let room = max.saturating_sub(draft.endpoints.len()).min(rest.len());
    draft.endpoints.extend(rest.drain(rest.len() - room..).rev());
}

/// Returns the fullest slice that has room for so many more endpoints.
fn slice_with_room(slices: &[ExistingSlice], endpoints: usize, max: usize) -> Option<usize> {
    let room = |slice: &ExistingSlice| max.checked_sub(slice.endpoints.len() + endpoints);
    let fitting = slices.iter().enumerate().filter_map(|(at, slice)| Some((room(slice)?, at)));
    fitting.min().map(|(_, at)| at)
}
