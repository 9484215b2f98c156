//! The responses of reviews, for as long as they count.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// Hash of the subject of a review, so that neither tokens nor long paths stay in memory.
pub(super) type Key = [u8; 32];

/// Hashes the subject of a review.
pub(super) fn key(of: &[u8]) -> Key {
    let hash = digest(&SHA256, of);
    let mut key = [0; 32];
    key.copy_from_slice(hash.as_ref());
    key
}

/// The responses of reviews. Pure: the time is an argument.
#[derive(Debug)]
struct Answers<V> {
    most: usize,
    by_key: HashMap<Key, (V, Instant)>,
    by_end: BTreeSet<(Instant, Key)>,
}

impl<V: Clone> Answers<V> {
    fn new(most: usize) -> Self {
        Self { most, by_key: HashMap::new(), by_end: BTreeSet::new() }
    }

    fn get(&mut self, key: &Key, now: Instant) -> Option<V> {
        while let Some((_, old)) = self.by_end.first().filter(|(end, _)| *end <= now).copied() {
            self.remove(&old);
        }
        self.by_key.get(key).map(|(answer, _)| answer.clone())
    }

    /// Keeps a response until `end`. If there are too many, drops the response that ends first.
    fn insert(&mut self, key: Key, answer: V, end: Instant) {
        self.remove(&key);
        if self.by_key.len() >= self.most
            && let Some((_, first)) = self.by_end.first().copied()
        {
            self.remove(&first);
        }
        self.by_end.insert((end, key));
        self.by_key.insert(key, (answer, end));
    }

    fn remove(&mut self, key: &Key) {
        if let Some((_, end)) = self.by_key.remove(key) {
            self.by_end.remove(&(end, *key));
        }
    }
}

type Pending<V> = Arc<OnceCell<Result<V, String>>>;

/// The responses of reviews, for as long as they count. Equal reviews at a time are sent once.
#[derive(Debug)]
pub(super) struct ReviewCache<V> {
    answers: Mutex<Answers<V>>,
    pending: Mutex<HashMap<Key, Pending<V>>>,
}

impl<V: Clone> ReviewCache<V> {
    /// Makes a cache of at most `most` responses.
    pub(super) fn new(most: usize) -> Self {
        Self { answers: Mutex::new(Answers::new(most)), pending: Mutex::default() }
    }

    /// Returns the cached response.
    pub(super) fn known(&self, key: &Key) -> Option<V> {
        self.answers.lock().get(key, Instant::now())
    }

    /// Returns the cached response. If there is none, calls `review` and caches its response for `ttl`.
    ///
    /// # Cancellation
    /// Another caller that waits for the same review sends it again.
    ///
    /// # Errors
    /// If the review fails. The error is not cached.
    pub(super) async fn get(
        &self,
        key: Key,
        ttl: impl FnOnce(&V) -> Duration,
        review: impl Future<Output = Result<V, String>>,
    ) -> Result<V, String> {
        if let Some(answer) = self.known(&key) {
            return Ok(answer);
        }
        let waiting = Waiting { cache: self, key, cell: self.pending.lock().entry(key).or_default().clone() };
        let answer = waiting.cell.get_or_init(|| review).await.clone();
        if let Ok(answer) = &answer {
            let ttl = ttl(answer);
            if !ttl.is_zero() && waiting.is_first() {
                self.answers.lock().insert(key, answer.clone(), Instant::now() + ttl);
            }
        }
        answer
    }
}

/// One caller that waits for a review.
struct Waiting<'a, V: Clone> {
    cache: &'a ReviewCache<V>,
    key: Key,
    cell: Pending<V>,
}

impl<V: Clone> Waiting<'_, V> {
    /// Returns `true` if no other caller has taken the response yet. The review is not pending any more from then on.
    fn is_first(&self) -> bool {
        let mut pending = self.cache.pending.lock();
        let is_pending = pending.get(&self.key).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell));
        if is_pending {
            pending.remove(&self.key);
        }
        is_pending
    }
}

impl<V: Clone> Drop for Waiting<'_, V> {
    fn drop(&mut self) {
        let mut pending = self.cache.pending.lock();
        // The map and this caller: no other caller waits.
        let is_last = Arc::strong_count(&self.cell) <= 2 || self.cell.initialized();
        if is_last && pending.get(&self.key).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell)) {
            pending.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::{advance, sleep};

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    struct Asked {
        cache: ReviewCache<u32>,
        reviews: Cell<u32>,
    }

    impl Asked {
        fn new(most: usize) -> Self {
            Self { cache: ReviewCache::new(most), reviews: Cell::new(0) }
        }

        /// Asks about `of`. The review takes a second, and returns the number of reviews so far.
        async fn ask(&self, of: &str) -> Result<u32, String> {
            let review = async {
                sleep(Duration::from_secs(1)).await;
                self.reviews.set(self.reviews.get() + 1);
                if of == "broken" { Err("no answer".to_owned()) } else { Ok(self.reviews.get()) }
            };
            self.cache.get(key(of.as_bytes()), |_| TTL, review).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_its_time() {
        let asked = Asked::new(10);
        assert_eq!(asked.ask("a").await, Ok(1));
        advance(Duration::from_millis(9999)).await;
        assert_eq!(asked.ask("a").await, Ok(1));
        assert_eq!(asked.ask("b").await, Ok(2));
        assert_eq!(asked.ask("a").await, Ok(3), "its time is over");
    }

    #[tokio::test(start_paused = true)]
    async fn equal_reviews_at_a_time_are_one() {
        let asked = Asked::new(10);
        let (one, same, other) = tokio::join!(asked.ask("a"), asked.ask("a"), asked.ask("b"));
        assert_eq!((one.as_ref(), asked.reviews.get()), (same.as_ref(), 2));
        assert_ne!(one, other);
        assert!(asked.cache.pending.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_not_kept() {
        let asked = Asked::new(10);
        for reviews in 1..3 {
            let (one, same) = tokio::join!(asked.ask("broken"), asked.ask("broken"));
            assert_eq!((one, same), (Err("no answer".to_owned()), Err("no answer".to_owned())));
            assert_eq!(asked.reviews.get(), reviews);
        }
        assert!(asked.cache.pending.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_goes_leaves_its_review_to_the_next() {
        let asked = Asked::new(10);
        let gone = tokio::time::timeout(Duration::from_millis(500), asked.ask("a"));
        let (gone, stays) = tokio::join!(gone, asked.ask("a"));
        assert!(gone.is_err());
        assert_eq!((stays, asked.reviews.get()), (Ok(1), 1));
        assert!(tokio::time::timeout(Duration::from_millis(500), asked.ask("b")).await.is_err());
        assert!(asked.cache.pending.lock().is_empty(), "a review without a caller is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_answers_the_first_to_end_is_dropped() {
        let asked = Asked::new(2);
        for (of, review) in [("a", 1), ("b", 2), ("c", 3), ("c", 3), ("b", 2), ("a", 4), ("c", 3)] {
            assert_eq!(asked.ask(of).await, Ok(review), "{of}");
        }
        let answers = asked.cache.answers.lock();
        assert_eq!((answers.by_key.len(), answers.by_end.len()), (2, 2));
    }
}
