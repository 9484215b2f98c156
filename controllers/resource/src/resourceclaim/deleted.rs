//! The objects whose deletion was seen.

use std::collections::{HashSet, VecDeque};

use kcm_framework::api::Uid;
use parking_lot::Mutex;

/// Number of uids that are kept, as upstream.
const KEPT: usize = 500;

/// The uids of the consumers whose deletion was seen last. A reservation of such a consumer is removed without a live
/// read.
#[derive(Debug, Default)]
pub(super) struct DeletedConsumers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    uids: HashSet<Uid>,
    order: VecDeque<Uid>,
}

impl DeletedConsumers {
    pub(super) fn insert(&self, uid: &Uid) {
        let mut kept = self.0.lock();
        if !kept.uids.insert(uid.clone()) {
            return;
        }
        kept.order.push_back(uid.clone());
        if kept.order.len() > KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.uids.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.0.lock().uids.contains(uid)
    }
}
