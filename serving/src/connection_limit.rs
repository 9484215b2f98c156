//! A bound on open connections. At the bound, a new connection displaces a connection of the address with the most.
//!
//! If new connections had to wait, idle connections of a hostile client would keep out the kubelet's probes, and a
//! failed probe restarts the process. Therefore the newest connection is always accepted.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time for which a new connection is displaced only if all connections of its address are new. A probe takes
/// milliseconds.
const NEW: Duration = Duration::from_secs(1);

/// Largest number of requests at a time on a connection without an authenticated user.
pub(super) const MOST_UNAUTHENTICATED: usize = 4;

/// The largest header of a request on a connection without an authenticated user.
pub(super) const UNAUTHENTICATED_HEADER_BYTES: usize = 8 * 1024;

/// Facts about a connection that decide its importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Standing {
    /// Whether a request on it came from an authenticated user.
    authenticated: bool,
    /// Whether a request on it is being served. A request that waits for a review does not count.
    busy: bool,
}

#[derive(Debug)]
struct Open {
    /// The network of its client.
    network: IpAddr,
    since: Instant,
    standing: Standing,
    requests: usize,
    served: usize,
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

/// The reason why a request is not admitted to a connection without an authenticated user.
#[derive(Debug)]
pub(super) enum NotAdmitted {
    /// The refusal takes the place of the response.
    HeaderTooLarge(RequestInPlace),
    TooManyRequests,
}

impl ConnectionLimit {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Returns a place for a new connection of a client. If no place is left, the least important connection loses its
    /// place.
    pub(super) fn enter(self: &Arc<Self>, client: IpAddr, now: Instant) -> Place {
        let displaced = CancellationToken::new();
        let mut guard = self.open.lock();
        let (next, open) = &mut *guard;
        if open.len() >= self.most
            && let Some(least) = least(open, now)
            && let Some(loser) = open.remove(&least)
        {
            loser.displaced.cancel();
        }
        let id = *next;
        *next += 1;
        let new = Open {
            network: network(client),
            since: now,
            standing: Standing::default(),
            requests: 0,
            served: 0,
            displaced: displaced.clone(),
        };
        open.insert(id, new);
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
            open.standing.busy = open.served > 0;
        }
    }
}

/// The network that an address counts for: a client of IPv6 can have all addresses of a /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// Returns a connection of the network with the most: before all a connection that is not new, then one without an
/// authenticated user, then an idle one, and of equals the oldest.
fn least(open: &BTreeMap<u64, Open>, now: Instant) -> Option<u64> {
    let mut of_network: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for one in open.values() {
        *of_network.entry(one.network).or_default() += 1;
    }
    let importance = |(id, one): &(&u64, &Open)| {
        let is_new = now.duration_since(one.since) < NEW;
        (Reverse(of_network.get(&one.network).copied()), is_new, one.standing, **id)
    };
    open.iter().min_by_key(importance).map(|(id, _)| *id)
}

impl Place {
    /// Takes a request with a header of so many bytes.
    ///
    /// # Errors
    /// If no user of the connection is authenticated yet, and the header is too large or too many requests are open.
    pub(super) fn admit(self: &Arc<Self>, header_bytes: usize) -> Result<RequestInPlace, NotAdmitted> {
        let (mut is_many, mut is_large) = (false, false);
        self.limit.change(self.id, |open| {
            is_many = !open.standing.authenticated && open.requests >= MOST_UNAUTHENTICATED;
            is_large = !open.standing.authenticated && header_bytes > UNAUTHENTICATED_HEADER_BYTES;
            open.requests += usize::from(!is_many);
        });
        if is_many {
            return Err(NotAdmitted::TooManyRequests);
        }
        let request = RequestInPlace { place: Arc::clone(self), is_served: false };
        if is_large { Err(NotAdmitted::HeaderTooLarge(request)) } else { Ok(request) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.limit.open.lock().1.remove(&self.id));
    }
}

/// A request on a connection, until its response has been sent.
#[derive(Debug)]
pub(super) struct RequestInPlace {
    place: Arc<Place>,
    is_served: bool,
}

impl RequestInPlace {
    /// The user may send the request: its connection is busy until the response has been sent.
    pub(super) fn serve(&mut self) {
        if !std::mem::replace(&mut self.is_served, true) {
            self.place.limit.change(self.place.id, |open| open.served += 1);
        }
    }

    /// The request came from an authenticated user.
    pub(super) fn authenticated(&self) {
        self.place.limit.change(self.place.id, |open| open.standing.authenticated = true);
    }
}

impl Drop for RequestInPlace {
    fn drop(&mut self) {
        self.place.limit.change(self.place.id, |open| {
            open.requests = open.requests.saturating_sub(1);
            open.served = open.served.saturating_sub(usize::from(self.is_served));
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// A limit, and a time that passes as the test wants it.
    struct World {
        limit: Arc<ConnectionLimit>,
        now: Instant,
    }

    impl World {
        fn new(most: usize) -> Self {
            Self { limit: ConnectionLimit::new(most), now: Instant::now() }
        }

        fn enter(&self, client: u8) -> Arc<Place> {
            Arc::new(self.limit.enter(Ipv4Addr::new(10, 0, 0, client).into(), self.now))
        }
    }

    fn serve(place: &Arc<Place>) -> RequestInPlace {
        let mut request = place.admit(0).expect("it is the first");
        request.serve();
        request
    }

    #[test]
    fn the_connection_that_matters_least_is_displaced() {
        let mut world = World::new(4);
        let [idle_user, busy_user, busy, idle] = std::array::from_fn(|_| world.enter(1));
        for user in [&idle_user, &busy_user] {
            user.admit(0).expect("it is the first").authenticated();
        }
        let _requests = [serve(&busy_user), serve(&busy)];
        let mut newer = Vec::new();
        for displaced in [&idle, &busy, &idle_user, &busy_user] {
            world.now += NEW;
            assert!(!displaced.displaced.is_cancelled());
            let place = world.enter(1);
            let request = serve(&place);
            request.authenticated();
            newer.push((request, place));
            assert!(displaced.displaced.is_cancelled());
            assert_eq!(world.limit.len(), 4);
        }
        assert!(newer.iter().all(|(_, place)| !place.displaced.is_cancelled()));
    }

    #[test]
    fn of_equals_the_oldest_is_displaced() {
        let world = World::new(2);
        let (first, second) = (world.enter(1), world.enter(1));
        let third = world.enter(1);
        assert!(first.displaced.is_cancelled() && !second.displaced.is_cancelled());
        drop(second);
        let fourth = world.enter(1);
        assert!(!third.displaced.is_cancelled() && !fourth.displaced.is_cancelled());
        drop((third, fourth, first));
        assert_eq!(world.limit.len(), 0);
    }

    #[test]
    fn a_connection_is_idle_again_after_its_last_request() {
        let world = World::new(2);
        let (first, second) = (world.enter(1), world.enter(1));
        let requests = [serve(&first), serve(&first)];
        let _busy = serve(&second);
        drop(requests);
        let _third = world.enter(1);
        assert!(first.displaced.is_cancelled() && !second.displaced.is_cancelled());
    }

    /// A flood of requests that wait for reviews, of one client, and a thousand more connections in the second of a
    /// probe.
    #[test]
    fn a_client_with_many_connections_displaces_only_its_own() {
        let mut world = World::new(256);
        let flood: Vec<_> = (0..255).map(|_| world.enter(1)).collect();
        let _waiting: Vec<_> = flood.iter().map(|place| place.admit(0).expect("it is the first")).collect();
        world.now += Duration::from_mins(1);
        let probe = world.enter(2);
        let mut newer = Vec::new();
        for _ in 0..1000 {
            newer.push(world.enter(1));
            world.now += Duration::from_millis(1);
        }
        assert!(!probe.displaced.is_cancelled());
        assert!(flood.iter().all(|place| place.displaced.is_cancelled()));
    }

    /// The kubelet and a hostile client behind one address, such as 127.0.0.1.
    #[test]
    fn a_connection_is_not_displaced_in_its_first_second_while_there_are_older_ones() {
        let mut world = World::new(3);
        let flood: Vec<_> = (0..2).map(|_| world.enter(1)).collect();
        // A hostile client may be authenticated and busy.
        let _busy: Vec<_> =
            flood.iter().map(|place| (place.admit(0).map(|one| one.authenticated()), serve(place))).collect();
        world.now += NEW;
        let probe = world.enter(1);
        world.now += Duration::from_millis(999);
        let newer = world.enter(1);
        assert!(flood[0].displaced.is_cancelled() && !probe.displaced.is_cancelled());
        world.now += Duration::from_millis(1);
        let _newest = world.enter(1);
        assert!(probe.displaced.is_cancelled(), "it is idle, and its second is over");
        assert!(!newer.displaced.is_cancelled());
    }

    #[test]
    fn requests_that_wait_for_a_review_do_not_make_a_connection_busy() {
        let world = World::new(2);
        let (waiting, busy) = (world.enter(1), world.enter(1));
        let _requests = (waiting.admit(0), serve(&busy));
        let _third = world.enter(1);
        assert!(waiting.displaced.is_cancelled() && !busy.displaced.is_cancelled());
    }

    #[test]
    fn a_connection_has_few_small_requests_until_a_user_is_authenticated() {
        let world = World::new(1);
        let place = world.enter(1);
        let large = UNAUTHENTICATED_HEADER_BYTES + 1;
        assert!(matches!(place.admit(large), Err(NotAdmitted::HeaderTooLarge(_))));
        let mut open: Vec<_> =
            (0..MOST_UNAUTHENTICATED).map(|_| place.admit(large - 1).expect("there is room")).collect();
        for bytes in [0, large] {
            assert!(matches!(place.admit(bytes), Err(NotAdmitted::TooManyRequests)));
        }
        open.pop();
        let next = place.admit(0).expect("there is room again");
        next.authenticated();
        assert!(place.admit(large).is_ok());
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_count_as_one() {
        let of = |text: &str| network(text.parse().expect("it is an address"));
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
