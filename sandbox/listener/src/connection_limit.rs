//! Who is connected, and who goes for a newcomer.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::activity::{Activity, Order};

/// How many connections beyond the bound are told that there are too many.
const REFUSALS: usize = 64;

/// The places for connections.
///
/// When all are taken, the connection that has had no request for the longest time makes room: a newcomer has
/// something to ask, an idle client connects again without noticing, and connections that never say anything push
/// out one another. When all are busy, the newcomer is told so. No request at work suffers for a new one.
#[derive(Clone)]
pub(crate) struct ConnectionLimit {
    limit: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    seen: u64,
    served: BTreeMap<u64, Arc<Activity>>,
    refused: BTreeMap<u64, Arc<Activity>>,
}

/// One connection's place; it is free again when this is dropped.
pub(crate) struct Slot {
    number: u64,
    pub(crate) activity: Arc<Activity>,
    /// The connection is there to be told that there are too many.
    pub(crate) refused: bool,
    taken: Arc<Mutex<Taken>>,
}

impl ConnectionLimit {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, taken: Arc::default() }
    }

    /// A place for a new connection; `None` where there is not even one for being refused.
    pub(crate) fn take(&self) -> Option<Slot> {
        let mut taken = self.taken.lock();
        let refused = taken.served.len() >= self.limit && !taken.free_one();
        if refused && taken.refused.len() >= REFUSALS {
            return None;
        }
        taken.seen += 1;
        let (number, activity) = (taken.seen, Activity::new());
        let places = if refused { &mut taken.refused } else { &mut taken.served };
        places.insert(number, activity.clone());
        Some(Slot { number, activity, refused, taken: self.taken.clone() })
    }

    /// Cuts the connection that has been idle the longest, where one is idle.
    pub(crate) fn free_one(&self) {
        self.taken.lock().free_one();
    }

    /// Ends all connections, but those with a request that will be answered soon only after it.
    pub(crate) fn close(&self) {
        let taken = self.taken.lock();
        for activity in taken.served.values().chain(taken.refused.values()) {
            activity.order(if activity.will_answer() { Order::Leave } else { Order::Cut });
        }
    }
}

impl Taken {
    fn free_one(&mut self) -> bool {
        let idle = self.served.iter().filter_map(|(number, activity)| Some((activity.idle_since()?, *number)));
        let Some((_, number)) = idle.min() else { return false };
        if let Some(activity) = self.served.remove(&number) {
            activity.order(Order::Cut);
        }
        true
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        let places = if self.refused { &mut taken.refused } else { &mut taken.served };
        places.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    fn is_cut(slot: &Slot) -> bool {
        slot.activity.ordered(Order::Cut).now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_idle_longest_makes_room() {
        let limit = ConnectionLimit::new(2);
        let first = limit.take().expect("there is room");
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = limit.take().expect("there is room");
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(first.activity.begin());
        let third = limit.take().expect("an idle one makes room");
        assert_eq!([&first, &second, &third].map(is_cut), [false, true, false]);
        assert!(!third.refused);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_at_work_makes_room() {
        let limit = ConnectionLimit::new(2);
        let busy: Vec<_> = (0..2).map(|_| limit.take().expect("there is room")).collect();
        let _work: Vec<_> = busy.iter().map(|slot| slot.activity.begin()).collect();
        let refused: Vec<_> = (0..REFUSALS).map(|_| limit.take().expect("it is told why")).collect();
        assert!(refused.iter().all(|slot| slot.refused));
        assert!(limit.take().is_none());
        assert!(!busy.iter().any(is_cut));
        drop(busy);
        assert!(!limit.take().expect("there is room again").refused);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_short_requests_only() {
        let limit = ConnectionLimit::new(2);
        let (idle, busy) = (limit.take().expect("there is room"), limit.take().expect("there is room"));
        let _request = busy.activity.begin();
        limit.close();
        assert!(is_cut(&idle) && !is_cut(&busy));
        assert!(busy.activity.ordered(Order::Leave).now_or_never().is_some());
    }
}
