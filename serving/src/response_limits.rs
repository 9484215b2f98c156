//! Bounds on the responses that are made and sent at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Largest number of responses, except about health, that are made and sent at a time. Further requests wait. A scrape
/// is some hundred kilobytes, and clients may read slowly.
const MOST_RESPONSES: usize = 32;

/// Number of these responses that are for users with no other response.
const RESERVED: usize = 8;

/// Longest time that a request waits for another response to be sent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest number of responses about health, and of refusals, whose body is sent at a time: once for users, and once for
/// requests without credentials.
const MOST_SMALL: usize = 64;

/// Bounds on the responses that are made and sent at a time.
#[derive(Debug)]
pub(super) struct ResponseLimits {
    shared: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    small: Arc<Semaphore>,
    small_anonymous: Arc<Semaphore>,
    /// Number of responses that each user has or waits for.
    users: Arc<Mutex<HashMap<String, usize>>>,
}

/// The right to make and send a response, while the value lives.
#[derive(Debug)]
pub(super) struct ResponsePermit {
    _permit: OwnedSemaphorePermit,
    _of_user: OfUser,
}

impl ResponseLimits {
    pub(super) fn new() -> Self {
        let semaphore = |most| Arc::new(Semaphore::new(most));
        Self {
            shared: semaphore(MOST_RESPONSES - RESERVED),
            reserved: semaphore(RESERVED),
            small: semaphore(MOST_SMALL),
            small_anonymous: semaphore(MOST_SMALL),
            users: Arc::default(),
        }
    }

    /// Waits until a response for `user` may be made. Returns `None` if that takes too long.
    pub(super) async fn wait(&self, user: &str) -> Option<ResponsePermit> {
        let (of_user, is_only) = OfUser::enter(&self.users, user);
        let shared = Arc::clone(&self.shared).acquire_owned();
        let reserved = async {
            if is_only { Arc::clone(&self.reserved).acquire_owned().await } else { std::future::pending().await }
        };
        let permit = async {
            tokio::select! {
                biased;
                permit = shared => permit,
                permit = reserved => permit,
            }
        };
        let permit = timeout(PATIENCE, permit).await.ok()?.ok()?;
        Some(ResponsePermit { _permit: permit, _of_user: of_user })
    }

    /// Takes a permit for the body of a small response, if one is left.
    pub(super) fn small(&self, is_anonymous: bool) -> Option<OwnedSemaphorePermit> {
        let permits = if is_anonymous { &self.small_anonymous } else { &self.small };
        Arc::clone(permits).try_acquire_owned().ok()
    }
}

/// Counts a response of a user, while the value lives.
#[derive(Debug)]
struct OfUser {
    users: Arc<Mutex<HashMap<String, usize>>>,
    name: String,
}

impl OfUser {
    /// Counts a response. Returns `true` if the user has no other.
    fn enter(users: &Arc<Mutex<HashMap<String, usize>>>, name: &str) -> (Self, bool) {
        let mut counts = users.lock();
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        let is_only = *count == 1;
        drop(counts);
        (Self { users: Arc::clone(users), name: name.to_owned() }, is_only)
    }
}

impl Drop for OfUser {
    fn drop(&mut self) {
        let mut counts = self.users.lock();
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_ten_seconds_at_most() {
        let limits = ResponseLimits::new();
        let names: Vec<String> = (0..MOST_RESPONSES).map(|user| user.to_string()).collect();
        let mut held: Vec<_> = join_all(names.iter().map(|name| limits.wait(name))).await;
        assert!(held.iter().all(Option::is_some));
        let begun = Instant::now();
        assert!(limits.wait("late").await.is_none());
        assert_eq!(begun.elapsed(), PATIENCE);
        let later = async {
            tokio::time::sleep(PATIENCE.saturating_sub(Duration::from_millis(1))).await;
            drop(held.pop());
        };
        let (permit, ()) = tokio::join!(limits.wait("later"), later);
        assert!(permit.is_some());
        drop((held, permit));
        assert!(limits.users.lock().is_empty(), "users without responses take no memory");
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_leaves_room_for_others() {
        let limits = ResponseLimits::new();
        let of_one = join_all((0..MOST_RESPONSES).map(|_| limits.wait("scraper"))).await;
        assert_eq!(of_one.iter().flatten().count(), MOST_RESPONSES - RESERVED);
        let begun = Instant::now();
        let mut others = Vec::new();
        for user in 0..RESERVED {
            others.push(limits.wait(&user.to_string()).await.expect("there is room"));
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(limits.wait("last").await.is_none());
    }

    #[test]
    fn users_and_requests_without_credentials_have_small_responses_of_their_own() {
        let limits = ResponseLimits::new();
        for is_anonymous in [true, false] {
            let held: Vec<_> = (0..MOST_SMALL).map(|_| limits.small(is_anonymous)).collect();
            assert!(held.iter().all(Option::is_some) && limits.small(is_anonymous).is_none());
        }
    }
}
