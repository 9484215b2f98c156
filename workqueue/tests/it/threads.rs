//! The queue on several threads, which the paused clock of one thread cannot cover.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

use kcm_workqueue::{Priority, Queue, QueueOptions};
use tokio::task::JoinSet;

const KEYS: usize = 50;
const ADDS_PER_PRODUCER: usize = 20_000;
const PRODUCERS: usize = 4;
const WORKERS: usize = 4;

/// The counters of one key.
#[derive(Default)]
struct Watched {
    changed: AtomicU32,
    seen: AtomicU32,
    is_processing: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_is_seen_and_no_key_is_in_two_hands() {
    let queue = Queue::new(QueueOptions::named("threads"));
    let keys: Arc<Vec<Watched>> = Arc::new((0..KEYS).map(|_| Watched::default()).collect());
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(queue.clone(), Arc::clone(&keys)));
    }
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (queue, keys) = (&queue, &keys);
            scope.spawn(move || {
                for nth in 0..ADDS_PER_PRODUCER {
                    let key = (nth * 7 + producer) % KEYS;
                    keys[key].changed.fetch_add(1, SeqCst);
                    queue.add(key, if nth % 3 == 0 { Priority::Initial } else { Priority::Live });
                }
            });
        }
    });
    queue.shut_down();
    let handled: usize = workers.join_all().await.into_iter().sum();

    assert!(handled >= KEYS);
    for (key, watched) in keys.iter().enumerate() {
        assert_eq!(watched.seen.load(SeqCst), watched.changed.load(SeqCst), "key {key}");
    }
    assert_eq!(queue.snapshot().remembered, 0);
}

async fn work(queue: Queue<usize>, keys: Arc<Vec<Watched>>) -> usize {
    let mut handled = 0;
    while let Some(key) = queue.get().await {
        let watched = &keys[key];
        assert!(!watched.is_processing.swap(true, SeqCst), "key {key} is processed twice at once");
        watched.seen.store(watched.changed.load(SeqCst), SeqCst);
        handled += 1;
        watched.is_processing.store(false, SeqCst);
        if handled % 5 == 0 {
            queue.park(&key);
            queue.unpark(&key);
        } else {
            queue.done(&key);
        }
    }
    handled
}
