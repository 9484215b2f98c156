//! Live reads that the reconciles of several keys share.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time for which a live read is shared, from its response.
const FRESH: Duration = Duration::from_secs(1);

/// Live reads of the last second, by what was read.
///
/// For decisions that need a live read, such as deletions, about many keys at once: the pods of one node, the claims of one
/// namespace.
///
/// # Guarantees
/// Reconciles that need the same read at the same time wait for one request. An error is not shared. The memory holds the
/// reads of the last second only, once another one begins.
#[derive(Debug)]
pub struct SharedReads<K, T>(Mutex<HashMap<K, Slot<T>>>);

type Slot<T> = Arc<tokio::sync::Mutex<Option<Read<T>>>>;

#[derive(Debug)]
struct Read<T> {
    requested: Instant,
    responded: Instant,
    value: T,
}

impl<T> Read<T> {
    fn is_fresh(&self) -> bool {
        self.responded.elapsed() < FRESH
    }
}

impl<K, T> Default for SharedReads<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, T: Clone> SharedReads<K, T> {
    /// Returns a read of the last second that was not requested before `since`; without one, the result of `read`.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// # Cancellation
    /// If the future is dropped, the next reconcile that waits reads.
    pub async fn get<Q, E>(
        &self,
        key: &Q,
        since: Option<Instant>,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        K: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Eq + Hash + ?Sized,
    {
        let slot = self.slot(key);
        let mut last = slot.lock().await;
        let is_usable = |last: &&Read<T>| last.is_fresh() && since.is_none_or(|since| last.requested >= since);
        if let Some(last) = last.as_ref().filter(is_usable) {
            return Ok(last.value.clone());
        }
        let requested = Instant::now();
        let value = read.await?;
        *last = Some(Read { requested, responded: Instant::now(), value: value.clone() });
        Ok(value)
    }

    fn slot<Q>(&self, key: &Q) -> Slot<T>
    where
        K: Borrow<Q> + for<'a> From<&'a Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut slots = self.0.lock();
        if let Some(slot) = slots.get(key) {
            return Arc::clone(slot);
        }
        // A slot that others hold is in use.
        slots.retain(|_, slot| {
            let is_fresh = || slot.try_lock().is_ok_and(|read| read.as_ref().is_some_and(Read::is_fresh));
            Arc::strong_count(slot) > 1 || is_fresh()
        });
        Arc::clone(slots.entry(key.into()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Reads that take half a second, and their number.
    #[derive(Default)]
    struct Server {
        reads: SharedReads<Box<str>, u32>,
        requests: AtomicU32,
    }

    impl Server {
        async fn get(&self, key: &str, since: Option<Instant>) -> u32 {
            let read = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Ok::<_, Infallible>(self.requests.fetch_add(1, Ordering::Relaxed) + 1)
            };
            self.reads.get(key, since, read).await.unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_share_a_request_for_a_second() {
        let server = Server::default();
        let (first, second) = tokio::join!(server.get("a", None), server.get("a", None));
        assert_eq!((first, second), (1, 1));
        assert_eq!(server.get("b", None).await, 2);
        tokio::time::advance(Duration::from_millis(499)).await;
        assert_eq!(server.get("a", None).await, 1, "just before the second is over");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(server.get("a", None).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_was_requested_too_early_is_repeated() {
        let server = Server::default();
        let before = Instant::now();
        assert_eq!(server.get("a", Some(before)).await, 1);
        assert_eq!(server.get("a", Some(before)).await, 1, "it was requested then");
        // It was under way at that time.
        assert_eq!(server.get("a", Some(before + Duration::from_millis(1))).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_not_shared() {
        let reads = SharedReads::<Box<str>, u32>::default();
        assert_eq!(reads.get("a", None, async { Err("as the test wants it") }).await, Err("as the test wants it"));
        assert_eq!(reads.get("a", None, async { Ok::<_, &str>(1) }).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn old_reads_are_forgotten() {
        let server = Server::default();
        for key in ["a", "b", "c"] {
            server.get(key, None).await;
        }
        tokio::time::advance(FRESH).await;
        server.get("d", None).await;
        assert_eq!(server.reads.0.lock().len(), 1);
    }
}
