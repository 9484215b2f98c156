//! The contract page of the crate, sentence by sentence.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kcm_workqueue::{Metrics, Priority, Queue, QueueOptions, RetryLimits, UnfinishedWork};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, advance};

use Priority::{Initial, Live};

const MOMENT: Duration = Duration::from_nanos(1);

fn queue() -> Queue<&'static str> {
    Queue::new(QueueOptions::named("contract"))
}

fn queue_limited_by(limits: RetryLimits) -> Queue<&'static str> {
    Queue::new(QueueOptions { limits, ..QueueOptions::named("contract") })
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn add_all(queue: &Queue<&'static str>, keys: &[&'static str], priority: Priority) {
    for key in keys {
        queue.add(key, priority);
    }
}

/// The key that `get` returns without waiting.
fn take<K: Clone + Eq + std::hash::Hash>(queue: &Queue<K>) -> Option<K> {
    queue.get().now_or_never().flatten()
}

/// All keys that `get` returns without waiting, in order.
fn take_all<K: Clone + Eq + std::hash::Hash>(queue: &Queue<K>) -> Vec<K> {
    std::iter::from_fn(|| take(queue)).collect()
}

/// A queue whose only key is processing.
fn queue_with_processing_key() -> Queue<&'static str> {
    let queue = queue();
    queue.add("a", Live);
    assert_eq!(take(&queue), Some("a"));
    queue
}

/// Asserts that `key` is taken after exactly `wait`: not just before, but at the bound.
async fn assert_ready_after(queue: &Queue<&'static str>, key: &'static str, wait: Duration) {
    advance(wait.saturating_sub(MOMENT)).await;
    assert_eq!(take(queue), None, "{key} came too early");
    advance(MOMENT).await;
    assert_eq!(take(queue), Some(key), "{key} did not come in time");
}

#[test]
fn the_page_and_these_tests_say_the_same() {
    let page = include_str!("../../src/lib.rs");
    let mut sentences: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! - **")?.split_once(".**"))
        .map(|(sentence, _)| sentence.to_lowercase().replace([' ', '-'], "_"))
        .collect();
    let mut tests: Vec<&str> = include_str!("contract.rs")
        .split("start_paused = true)]\nasync fn ")
        .skip(1)
        .filter_map(|test| test.split_once("()").map(|(name, _)| name))
        .filter(|name| !name.contains('"'))
        .collect();
    sentences.sort_unstable();
    tests.sort_unstable();
    assert_eq!(sentences, tests);
}

#[tokio::test(start_paused = true)]
async fn a_key_added_many_times_before_it_is_taken_is_taken_once() {
    let queue = queue();
    add_all(&queue, &["a", "a", "a"], Live);
    assert_eq!(queue.len(), 1);
    assert_eq!(take_all(&queue), ["a"]);
    queue.done(&"a");
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_processed_twice_at_once() {
    let queue = queue_with_processing_key();
    queue.add("a", Live);
    queue.add_after("a", millis(1), Live);
    queue.retry("a");
    advance(Duration::from_hours(1)).await;
    assert_eq!(take(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_it_is_processing_is_ready_again_when_it_is_done() {
    let queue = queue_with_processing_key();
    queue.add("a", Live);
    queue.done(&"a");
    assert_eq!(take(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn live_keys_go_before_initial_keys() {
    let queue = queue();
    queue.add("initial", Initial);
    queue.add("live", Live);
    advance(millis(1000).saturating_sub(MOMENT)).await;
    assert_eq!(take_all(&queue), ["live", "initial"]);
}

#[tokio::test(start_paused = true)]
async fn within_a_priority_the_first_to_come_is_the_first_to_go() {
    for priority in [Live, Initial] {
        let queue = queue();
        add_all(&queue, &["c", "a", "b", "a", "c"], priority);
        assert_eq!(take_all(&queue), ["c", "a", "b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_added_at_both_priorities_is_live() {
    for priorities in [[Live, Initial], [Initial, Live]] {
        let queue = queue();
        queue.add("initial", Initial);
        for priority in priorities {
            queue.add("both", priority);
        }
        assert_eq!(take_all(&queue), ["both", "initial"]);
    }
}

#[tokio::test(start_paused = true)]
async fn raising_a_key_never_makes_it_wait_longer() {
    let queue = queue();
    queue.add("raised", Initial);
    add_all(&queue, &["b", "c", "d"], Live);
    advance(Duration::from_secs(1)).await;
    queue.add("raised", Live);
    assert_eq!(take_all(&queue), ["b", "raised", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn initial_keys_that_have_aged_take_turns_with_live_keys() {
    let queue = queue();
    add_all(&queue, &["i1", "i2"], Initial);
    advance(Duration::from_secs(1)).await;
    queue.add("i3", Initial);
    add_all(&queue, &["l1", "l2", "l3", "l4"], Live);
    assert_eq!(take_all(&queue), ["l1", "i1", "l2", "i2", "l3", "l4", "i3"]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_ready_when_its_delay_is_over_and_not_before() {
    let queue = queue();
    queue.add_after("a", millis(50), Live);
    assert_ready_after(&queue, "a", millis(50)).await;
    queue.done(&"a");

    let start = Instant::now();
    queue.add_after("a", millis(50), Live);
    assert_eq!(queue.get().await, Some("a"), "a worker that waits gets it too");
    assert_eq!(start.elapsed(), millis(50));
}

#[tokio::test(start_paused = true)]
async fn of_several_delays_of_a_key_the_earliest_counts() {
    let queue = queue();
    queue.add_after("a", millis(50), Initial);
    queue.add_after("a", millis(20), Initial);
    queue.add_after("a", millis(80), Live);
    queue.add_after("initial", millis(10), Initial);
    advance(millis(20).saturating_sub(MOMENT)).await;
    assert_eq!(queue.len(), 1);
    advance(MOMENT).await;
    assert_eq!(take_all(&queue), ["a", "initial"]);
    queue.done(&"a");
    advance(Duration::from_hours(1)).await;
    assert_eq!(take(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn an_add_does_not_take_back_a_delayed_add() {
    let queue = queue();
    queue.add_after("a", millis(50), Live);
    queue.add("a", Live);
    assert_eq!(take(&queue), Some("a"));
    queue.done(&"a");
    assert_ready_after(&queue, "a", millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_ends_while_its_key_is_processing_or_parked_counts_as_an_add() {
    let queue = queue_with_processing_key();
    queue.add_after("a", millis(50), Live);
    advance(millis(50)).await;
    queue.done(&"a");
    assert_eq!(take(&queue), Some("a"));

    queue.add_after("a", millis(50), Live);
    queue.park(&"a");
    advance(millis(50)).await;
    queue.unpark(&"a");
    assert_eq!(take(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_back_off_of_its_key() {
    let queue = queue_with_processing_key();
    for backoff in [5, 10, 20, 40] {
        queue.retry("a");
        queue.done(&"a");
        assert_ready_after(&queue, "a", millis(backoff)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_within_a_limit_waits_no_longer_for_its_back_off() {
    let queue = queue_with_processing_key();
    for backoff in [5, 10, 12, 12] {
        queue.retry_within("a", millis(12));
        queue.done(&"a");
        assert_ready_after(&queue, "a", millis(backoff)).await;
    }
    queue.retry("a");
    queue.done(&"a");
    assert_ready_after(&queue, "a", millis(80)).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_token_bucket_of_all_keys() {
    let queue = queue_limited_by(RetryLimits { burst: 2, ..RetryLimits::default() });
    for key in ["a", "b", "c", "d"] {
        queue.retry(key);
    }
    assert_ready_after(&queue, "a", millis(5)).await;
    assert_eq!(take_all(&queue), ["b"]);
    assert_ready_after(&queue, "c", millis(95)).await;
    assert_ready_after(&queue, "d", millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_the_priority_of_its_key() {
    let queue = queue();
    queue.add("failed", Initial);
    assert_eq!(take(&queue), Some("failed"));
    queue.retry("failed");
    queue.done(&"failed");
    advance(millis(5)).await;
    queue.add("live", Live);
    assert_eq!(take_all(&queue), ["live", "failed"]);
}

#[tokio::test(start_paused = true)]
async fn an_add_is_never_held_back() {
    let queue = queue_limited_by(RetryLimits { burst: 0, ..RetryLimits::default() });
    for _ in 0..30 {
        queue.retry("a");
    }
    add_all(&queue, &["a", "b", "c"], Live);
    assert_eq!(take_all(&queue), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn only_a_retry_counts_as_a_failure() {
    let queue = queue_with_processing_key();
    queue.add("a", Live);
    queue.add_after("a", millis(1), Live);
    queue.park(&"a");
    queue.unpark(&"a");
    assert_eq!(queue.failures(&"a"), 0);
    queue.retry("a");
    queue.retry("a");
    assert_eq!(queue.failures(&"a"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_goes_on_failing_is_never_dropped() {
    let queue = queue_with_processing_key();
    for failures in 1..=30 {
        queue.retry("a");
        queue.done(&"a");
        let snapshot = queue.snapshot();
        assert_eq!(snapshot.failing[0].failures, failures);
        assert_eq!(snapshot.failing[0].at_longest_backoff, failures >= 19);
        let wait = snapshot.delayed[0].due_in;
        assert_ready_after(&queue, "a", wait).await;
        assert_eq!(wait == Duration::from_secs(1000), failures >= 19);
    }
}

#[tokio::test(start_paused = true)]
async fn forgetting_a_key_resets_its_failures() {
    let queue = queue_with_processing_key();
    for _ in 0..5 {
        queue.retry("a");
    }
    queue.forget(&"a");
    queue.done(&"a");
    assert_eq!(queue.failures(&"a"), 0);
    assert_ready_after(&queue, "a", millis(5)).await;

    queue.retry("a");
    queue.done(&"a");
    assert_ready_after(&queue, "a", millis(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_is_not_handed_out() {
    let queue = queue_with_processing_key();
    queue.park(&"a");
    queue.add("a", Live);
    queue.add_after("a", millis(1), Live);
    queue.retry("a");
    advance(Duration::from_hours(1)).await;
    assert_eq!(take(&queue), None);
    assert_eq!(queue.snapshot().parked[0].age, Duration::from_hours(1));
}

#[tokio::test(start_paused = true)]
async fn a_key_added_since_it_was_taken_is_ready_when_it_is_unparked() {
    let queue = queue_with_processing_key();
    queue.add("a", Live);
    queue.park(&"a");
    queue.unpark(&"a");
    assert_eq!(take(&queue), Some("a"));

    queue.park(&"a");
    queue.add("a", Live);
    queue.unpark(&"a");
    assert_eq!(take(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_key_not_added_since_it_was_taken_is_idle_when_it_is_unparked() {
    let queue = queue_with_processing_key();
    queue.park(&"a");
    queue.unpark(&"a");
    assert_eq!(take(&queue), None);
    queue.add("a", Live);
    assert_eq!(take(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn parked_time_is_not_work() {
    let queue = queue_with_processing_key();
    advance(millis(30)).await;
    assert_eq!(queue.unfinished_work(), UnfinishedWork { total: millis(30), longest: millis(30) });
    queue.park(&"a");
    advance(millis(30)).await;
    assert_eq!(queue.unfinished_work(), UnfinishedWork::default());
}

#[tokio::test(start_paused = true)]
async fn as_many_waiting_workers_wake_as_keys_are_ready() {
    let queue = queue();
    let mut workers = waiting_workers(&queue, 3).await;
    add_all(&queue, &["a", "b"], Live);
    let mut taken = [workers.join_next().await, workers.join_next().await].map(|worker| worker?.ok()?);
    taken.sort_unstable();
    assert_eq!(taken, [Some("a"), Some("b")]);

    queue.add_after("d", millis(5), Live);
    queue.add_after("e", millis(5), Live);
    workers.spawn(next(&queue));
    let mut taken = [workers.join_next().await, workers.join_next().await].map(|worker| worker?.ok()?);
    taken.sort_unstable();
    assert_eq!(taken, [Some("d"), Some("e")], "two keys that are due at once are taken by two");

    let mut workers = waiting_workers(&queue, 2).await;
    add_all(&queue, &["d", "e"], Live);
    queue.done(&"d");
    assert_eq!(workers.join_next().await.and_then(Result::ok), Some(Some("d")), "done makes a key ready");
    queue.park(&"e");
    queue.unpark(&"e");
    assert_eq!(workers.join_next().await.and_then(Result::ok), Some(Some("e")), "unpark makes a key ready");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_wakes_for_a_delay_shorter_than_the_one_it_waits_for() {
    let queue = queue();
    queue.add_after("later", Duration::from_hours(1), Live);
    queue.add_after("last", Duration::MAX, Live);
    let start = Instant::now();
    let mut workers = waiting_workers(&queue, 2).await;
    queue.add_after("sooner", millis(50), Live);
    queue.add("now", Live);
    for (key, after) in [("now", 0), ("sooner", 50)] {
        let taken = workers.join_next().await.expect("a worker waits").expect("it does not panic");
        assert_eq!((taken, start.elapsed()), (Some(key), millis(after)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_always_finds_a_key_gives_way_to_other_tasks() {
    let queue = queue();
    queue.add("a", Live);
    let mut workers = JoinSet::new();
    let worked = queue.clone();
    workers.spawn(async move {
        for _ in 0..10_000 {
            let key = worked.get().await.expect("the queue is open");
            worked.add(key, Live);
            worked.done(&key);
        }
    });
    tokio::task::yield_now().await;
    assert!(workers.try_join_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_get_loses_nothing() {
    let queue = queue();
    let mut dropped = Box::pin(queue.get());
    assert!(dropped.as_mut().now_or_never().is_none());
    let mut workers = waiting_workers(&queue, 1).await;
    queue.add("a", Live);
    drop(dropped);
    assert_eq!(workers.join_next().await.and_then(Result::ok), Some(Some("a")));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_counts_all_keys_and_lists_the_first_hundred() {
    let queue = Queue::new(QueueOptions::named("numbers"));
    for key in 0..150_u32 {
        queue.add(key, Live);
        queue.get().await.expect("it is ready");
        for _ in 0..=key % 3 {
            queue.retry(key);
        }
        queue.park(&key);
        advance(millis(1)).await;
    }
    let snapshot = queue.snapshot();
    assert_eq!(snapshot.counts, queue.key_counts());
    assert_eq!((snapshot.counts.parked, snapshot.counts.failing), (150, 150));
    let parked: Vec<u32> = snapshot.parked.iter().map(|held| held.key).collect();
    assert_eq!(parked, (0..100).collect::<Vec<_>>(), "the longest parked first");
    let failing: Vec<u32> = snapshot.failing.iter().map(|failing| failing.key).collect();
    let by_failures = [2, 1].into_iter().flat_map(|rest| (0..50).map(move |third| third * 3 + rest));
    assert_eq!(failing, by_failures.collect::<Vec<_>>(), "the most failures first");
    assert_eq!(snapshot.delayed.len(), snapshot.counts.delayed.min(100));
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_fit_the_key_do_nothing() {
    let queue = queue();
    queue.add("ready", Live);
    queue.add("parked", Live);
    assert_eq!(take_all(&queue), ["ready", "parked"]);
    queue.park(&"parked");
    queue.add("parked", Live);
    queue.done(&"ready");
    queue.add("ready", Live);
    let before = queue.snapshot();
    for key in ["ready", "parked", "unknown"] {
        queue.done(&key);
        queue.park(&key);
    }
    for key in ["ready", "unknown"] {
        queue.unpark(&key);
    }
    assert_eq!(queue.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn a_cleared_queue_hands_out_nothing_before_the_next_add() {
    let queue = queue();
    add_all(&queue, &["a", "b"], Live);
    queue.add("c", Initial);
    queue.add_after("d", millis(50), Live);
    queue.add_after("a", millis(50), Live);
    queue.retry("e");
    queue.clear();
    assert_eq!((queue.len(), queue.snapshot().remembered, queue.failures(&"e")), (0, 0, 0));
    advance(Duration::from_hours(1)).await;
    assert_eq!(take(&queue), None);
    add_all(&queue, &["b", "a"], Live);
    assert_eq!(take_all(&queue), ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_processing_or_parked_outlives_the_clearing() {
    let queue = queue();
    add_all(&queue, &["done", "again", "parked"], Live);
    assert_eq!(take_all(&queue), ["done", "again", "parked"]);
    queue.park(&"parked");
    add_all(&queue, &["again", "parked"], Live);
    queue.add_after("done", millis(50), Live);
    queue.clear();
    assert_eq!(take(&queue), None);
    queue.done(&"done");
    queue.done(&"again");
    queue.unpark(&"parked");
    assert_eq!(take_all(&queue), ["again", "parked"]);
    advance(millis(50)).await;
    assert_eq!(take(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn the_shut_down_ends_every_waiting_get() {
    let queue = queue();
    queue.add_after("later", Duration::from_hours(1), Live);
    let start = Instant::now();
    let workers = waiting_workers(&queue, 3).await;
    queue.shut_down();
    assert_eq!(workers.join_all().await, [None, None, None]);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_is_handed_out_after_the_shut_down_and_then_get_ends() {
    let queue = queue_with_processing_key();
    queue.add("b", Live);
    queue.add_after("c", millis(50), Live);
    advance(millis(50)).await;
    queue.shut_down();
    assert_eq!(queue.get().await, Some("b"));
    assert_eq!(queue.get().await, Some("c"));
    assert_eq!(queue.get().await, None);
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_it_is_processing_is_handed_out_after_the_shut_down() {
    let queue = queue_with_processing_key();
    queue.add("a", Live);
    queue.shut_down();
    assert_eq!(queue.get().await, None);
    queue.done(&"a");
    assert_eq!(queue.get().await, Some("a"));
}

#[tokio::test(start_paused = true)]
async fn adds_after_the_shut_down_are_ignored() {
    let queue = queue();
    queue.shut_down();
    queue.add("a", Live);
    queue.add_after("a", Duration::ZERO, Live);
    queue.retry("a");
    advance(Duration::from_hours(1)).await;
    assert_eq!(queue.get().await, None);
    assert_eq!(queue.failures(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_shut_down_drops_what_is_delayed() {
    let queue = queue();
    queue.add_after("a", millis(50), Live);
    queue.shut_down();
    advance(millis(50)).await;
    assert_eq!(queue.get().await, None);
    assert_eq!(queue.snapshot().remembered, 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_key_without_failures_takes_no_memory() {
    let queue = queue_with_processing_key();
    queue.retry("a");
    queue.done(&"a");
    assert_ready_after(&queue, "a", millis(5)).await;
    queue.done(&"a");
    assert_eq!(queue.snapshot().remembered, 1, "a failure is remembered");
    queue.forget(&"a");
    assert_eq!(queue.snapshot().remembered, 0);
}

#[tokio::test(start_paused = true)]
async fn metrics_count_what_upstream_counts() {
    let recorded = Arc::new(Recorded::default());
    let metrics: Arc<dyn Metrics> = recorded.clone();
    let queue = Queue::new(QueueOptions { metrics, ..QueueOptions::named("recorded") });
    queue.add("a", Live);
    advance(millis(4)).await;
    queue.add("a", Live);
    advance(millis(6)).await;
    assert_eq!(take(&queue), Some("a"));
    queue.add("a", Live);
    queue.add_after("b", millis(20), Live);
    queue.retry("c");
    advance(millis(30)).await;
    queue.done(&"a");
    queue.done(&"a");
    assert_eq!(take_all(&queue), ["c", "b", "a"]);
    queue.park(&"a");
    queue.add("a", Live);
    queue.add("d", Live);
    queue.clear();
    queue.clear();
    let expected = [
        "added 1",
        "taken 10ms",
        "added 1",
        "retried",
        "retried",
        // c was due after 5 ms and b after 20 ms, at the first look after that.
        "added 2",
        "finished 30ms",
        "taken 25ms",
        "taken 10ms",
        // Since it was added, not since it was done.
        "taken 30ms",
        "finished 0ns",
        "added 1",
        "added 1",
        // The key that is parked still waits.
        "dropped 1",
    ];
    assert_eq!(*recorded.0.lock(), expected);
}

/// The calls to the metrics, in order.
#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

impl Metrics for Recorded {
    fn added(&self, keys: u64) {
        self.0.lock().push(format!("added {keys}"));
    }
    fn taken(&self, waited: Duration) {
        self.0.lock().push(format!("taken {waited:?}"));
    }
    fn dropped(&self, keys: u64) {
        self.0.lock().push(format!("dropped {keys}"));
    }
    fn finished(&self, worked: Duration) {
        self.0.lock().push(format!("finished {worked:?}"));
    }
    fn retried(&self) {
        self.0.lock().push("retried".to_owned());
    }
}

fn next(queue: &Queue<&'static str>) -> impl Future<Output = Option<&'static str>> + Send + 'static {
    let queue = queue.clone();
    async move { queue.get().await }
}

/// Workers that wait for a key.
async fn waiting_workers(queue: &Queue<&'static str>, number: usize) -> JoinSet<Option<&'static str>> {
    let mut workers = JoinSet::new();
    for _ in 0..number {
        workers.spawn(next(queue));
    }
    tokio::task::yield_now().await;
    workers
}
