//! When a queue makes no progress.

use std::time::Duration;

use futures::FutureExt as _;
use kcm_workqueue::{Held, ParkedKeys, Priority, Queue, QueueOptions};
use tokio::time::advance;

const LEAST: Duration = Duration::from_mins(1);

fn queue(keys: &[&'static str]) -> Queue<&'static str> {
    let queue = Queue::new(QueueOptions::named("stalls"));
    for &key in keys {
        queue.add(key, Priority::Live);
    }
    queue
}

fn take(queue: &Queue<&'static str>) -> &'static str {
    queue.get().now_or_never().flatten().expect("a key is ready")
}

fn stall(queue: &Queue<&'static str>) -> Option<(&'static str, u64)> {
    queue.stalled(LEAST).map(|Held { key, age, .. }| (key, age.as_secs()))
}

#[tokio::test(start_paused = true)]
async fn the_key_that_is_processed_for_longest_is_the_stall() {
    let queue = queue(&["a", "b", "c"]);
    take(&queue);
    advance(Duration::from_secs(30)).await;
    take(&queue);
    advance(Duration::from_secs(29)).await;
    assert_eq!(stall(&queue), None);
    advance(Duration::from_secs(1)).await;
    assert_eq!(stall(&queue), Some(("a", 60)));
    queue.done(&"a");
    assert_eq!(stall(&queue), None, "the other one is young, and a key was handed out lately");
    advance(Duration::from_secs(40)).await;
    assert_eq!(stall(&queue), Some(("b", 70)));
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_ready_while_none_is_handed_out_are_a_stall() {
    let queue = queue(&[]);
    advance(Duration::from_mins(10)).await;
    assert_eq!(stall(&queue), None, "there are no keys");
    queue.add("a", Priority::Live);
    advance(Duration::from_secs(59)).await;
    assert_eq!(stall(&queue), None);
    queue.add("b", Priority::Live);
    advance(Duration::from_secs(1)).await;
    assert_eq!(stall(&queue), Some(("a", 60)));
    take(&queue);
    queue.done(&"a");
    assert_eq!(stall(&queue), None, "a key was handed out just now");
}

#[tokio::test(start_paused = true)]
async fn keys_that_wait_for_a_time_or_for_a_write_are_no_stall() {
    let queue = queue(&["parked"]);
    take(&queue);
    queue.park(&"parked");
    queue.add_after("delayed", Duration::from_mins(10), Priority::Live);
    advance(Duration::from_secs(599)).await;
    assert_eq!(stall(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn parked_keys_are_counted_and_the_longest_parked_is_named() {
    let queue = queue(&["a", "b"]);
    assert_eq!(queue.parked(), ParkedKeys { count: 0, longest: None });
    take(&queue);
    queue.park(&"a");
    advance(Duration::from_secs(30)).await;
    take(&queue);
    queue.park(&"b");
    advance(Duration::from_secs(5)).await;
    let longest = |key, seconds| Some(Held { key, age: Duration::from_secs(seconds) });
    assert_eq!(queue.parked(), ParkedKeys { count: 2, longest: longest("a", 35) });
    queue.unpark(&"a");
    assert_eq!(queue.parked(), ParkedKeys { count: 1, longest: longest("b", 5) });
    queue.unpark(&"b");
    assert_eq!(queue.parked(), ParkedKeys { count: 0, longest: None });
}
