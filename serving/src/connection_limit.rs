//! A bound on open connections. At the bound, a new connection displaces the least important connection.
//!
//! If new connections had to wait, idle connections of a hostile client would keep out the kubelet's probes, and a
//! failed probe restarts the process. Therefore the newest connection is always accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Facts about a connection that decide its importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Standing {
    /// Whether a request on it came from an authenticated user.
    authenticated: bool,
    /// Whether a request on it is being served.
    busy: bool,
}

#[derive(Debug)]
struct Open {
    standing: Standing,
    requests: usize,
    displaced: CancellationToken,
}

/// The open connections, at most a number of them.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    most: usize,
    open: Mutex<(u64, BTreeMap<u64, Open>)>,
}

/// The place of an open connection, which ends with it.
#[derive(Debug)]
pub(super) struct Place {
    limit: Arc<ConnectionLimit>,
    id: u64,
    /// Cancelled when a newer connection takes the place.
    pub(super) displaced: CancellationToken,
}

impl ConnectionLimit {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Returns a place for a new connection. If no place is left, the least important connection loses its place: first
    /// connections without an authenticated user, then idle ones, the oldest first.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let displaced = CancellationToken::new();
        let mut guard = self.open.lock();
        let (next, open) = &mut *guard;
        if open.len() >= self.most
            && let Some(least) = least(open)
            && let Some(loser) = open.remove(&least)
        {
            loser.displaced.cancel();
        }
        let id = *next;
        *next += 1;
        open.insert(id, Open { standing: Standing::default(), requests: 0, displaced: displaced.clone() });
        drop(guard);
        Place { limit: Arc::clone(self), id, displaced }
    }

    /// Number of open connections.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.open.lock().1.len()
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.lock().1.get_mut(&id) {
            change(open);
            open.standing.busy = open.requests > 0;
        }
    }
}

fn least(open: &BTreeMap<u64, Open>) -> Option<u64> {
    open.iter().min_by_key(|(id, open)| (open.standing, **id)).map(|(id, _)| *id)
}

impl Place {
    /// Marks the connection as busy while the value lives.
    pub(super) fn request(self: &Arc<Self>) -> RequestInPlace {
        self.limit.change(self.id, |open| open.requests += 1);
        RequestInPlace(Arc::clone(self))
    }

    /// A request on the connection came from an authenticated user.
    pub(super) fn authenticated(&self) {
        self.limit.change(self.id, |open| open.standing.authenticated = true);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.limit.open.lock().1.remove(&self.id));
    }
}

/// A request that is being served.
#[derive(Debug)]
pub(super) struct RequestInPlace(Arc<Place>);

impl Drop for RequestInPlace {
    fn drop(&mut self) {
        self.0.limit.change(self.0.id, |open| open.requests = open.requests.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_matters_least_is_displaced() {
        let limit = ConnectionLimit::new(4);
        let enter = || Arc::new(limit.enter());
        let [idle_user, busy_user, busy, idle] = [enter(), enter(), enter(), enter()];
        idle_user.authenticated();
        busy_user.authenticated();
        let _requests = [busy_user.request(), busy.request()];
        let mut newer = Vec::new();
        for displaced in [&idle, &busy, &idle_user, &busy_user] {
            assert!(!displaced.displaced.is_cancelled());
            let place = enter();
            place.authenticated();
            newer.push((place.request(), place));
            assert!(displaced.displaced.is_cancelled());
            assert_eq!(limit.len(), 4);
        }
        assert!(newer.iter().all(|(_, place)| !place.displaced.is_cancelled()));
    }

    #[test]
    fn of_equals_the_oldest_is_displaced() {
        let limit = ConnectionLimit::new(2);
        let (first, second) = (limit.enter(), limit.enter());
        let third = limit.enter();
        assert!(first.displaced.is_cancelled() && !second.displaced.is_cancelled());
        drop(second);
        let fourth = limit.enter();
        assert!(!third.displaced.is_cancelled() && !fourth.displaced.is_cancelled());
        drop((third, fourth, first));
        assert_eq!(limit.len(), 0);
    }

    #[test]
    fn a_connection_is_idle_again_after_its_last_request() {
        let limit = ConnectionLimit::new(2);
        let (first, second) = (Arc::new(limit.enter()), Arc::new(limit.enter()));
        let requests = [first.request(), first.request()];
        let _busy = second.request();
        drop(requests);
        let _third = limit.enter();
        assert!(first.displaced.is_cancelled() && !second.displaced.is_cancelled());
    }
}
