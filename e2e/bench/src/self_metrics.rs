//! What a manager reports about itself: the peer in its metrics, ours in its log.

use std::time::Duration;

use kcm_e2e_harness::process::Process;
use tokio::process::Command;

/// How long a debugger may take.
const DEBUGGER: Duration = Duration::from_secs(20);

/// The memory of a process by its allocator, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Heap {
    /// Allocated and not freed, or, of the peer, not collected yet.
    pub(super) live: f64,
    /// Taken from the system beside that and not returned.
    pub(super) held: f64,
}

/// The memory of the Go runtime.
pub(super) fn heap_in_metrics(page: &str) -> Option<Heap> {
    let value = |name: &str| -> Option<f64> {
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    let live = value("go_memstats_heap_alloc_bytes")?;
    let taken = value("go_memstats_heap_sys_bytes")? - value("go_memstats_heap_released_bytes")?;
    Some(Heap { live, held: taken - live })
}

/// The bound of the highest bucket into which a key has fallen, in seconds; `None` where it has no bound.
pub(super) fn longest_wait_in_metrics(page: &str) -> Option<f64> {
    let buckets = page.lines().filter_map(|line| {
        let (labels, count) = line.strip_prefix("workqueue_queue_duration_seconds_bucket{")?.split_once("} ")?;
        let label =
            |name: &str| labels.split(',').find_map(|it| it.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'));
        let bound = if label("le")? == "+Inf" { f64::INFINITY } else { label("le")?.parse().ok()? };
        Some((label("name")?, bound, count.parse::<f64>().ok()?))
    });
    // Counts include those of lower buckets, and buckets come in order.
    let (mut longest, mut of, mut below) = (None, "", 0.0);
    for (queue, bound, count) in buckets {
        if queue != of {
            (of, below) = (queue, 0.0);
        }
        if count > below {
            longest = Some(longest.map_or(bound, |longest: f64| longest.max(bound)));
            below = count;
        }
    }
    longest.filter(|bound| bound.is_finite())
}

/// The memory of ours by jemalloc, which a debugger makes it print into the log. `None` where the system has no `gdb`, or
/// does not let it attach to other processes.
pub(super) async fn heap_of(manager: &Process) -> Option<Heap> {
    let before = manager.printed().ok()?.len();
    let process = manager.id().to_string();
    // The letters leave out all but the sums.
    let call = "call (void)malloc_stats_print((void*)0, (void*)0, \"gmdablxe\")";
    let printed = Command::new("gdb").args(["-nx", "-batch", "-p", &process, "-ex", call]).kill_on_drop(true).output();
    tokio::time::timeout(DEBUGGER, printed).await.ok()?.ok()?;
    heap_in_log(manager.printed().ok()?.get(before..)?)
}

/// Reads what jemalloc prints: one line of sums, as in `Allocated: 10, active: 20, resident: 30`.
fn heap_in_log(log: &str) -> Option<Heap> {
    let sums = log.lines().rev().find(|line| line.starts_with("Allocated: "))?;
    let value = |name: &str| -> Option<f64> {
        let text = sums.split(", ").find_map(|part| part.strip_prefix(name))?;
        text.split(' ').next()?.parse().ok()
    };
    let live = value("Allocated: ")?;
    // Its own tables count as resident there also where they were never touched.
    Some(Heap { live, held: value("resident: ")? - value("metadata: ")? - live })
}

/// The longest wait that ours logs when it ends, in seconds.
pub(super) fn longest_wait_in_log(log: &str) -> Option<f64> {
    let waits = log.lines().filter_map(|line| {
        let (_, rest) = line.split_once("longestWaitSeconds=")?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    });
    waits.reduce(f64::max)
}

/// The time between the first line of a log and the last "Caches are synced", in seconds; both managers log these words.
pub(super) fn caches_full_in_log(log: &str) -> Option<f64> {
    const DAY: f64 = 24.0 * 60.0 * 60.0;
    let first = log.lines().find_map(time_of_day)?;
    let last = log.lines().rev().find(|line| line.contains("Caches are synced"))?;
    Some((time_of_day(last)? - first).rem_euclid(DAY))
}

/// The time of a line, in seconds since midnight: it begins as in `I0102 15:04:05.6`.
fn time_of_day(line: &str) -> Option<f64> {
    let time = line.split(' ').nth(1)?;
    let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
    let (Some(hours), Some(minutes), Some(seconds), None) = (parts.next()?, parts.next()?, parts.next()?, parts.next())
    else {
        return None;
    };
    Some((hours * 60.0 + minutes) * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bucket_that_holds_something_bounds_the_wait() {
        let page = "\
# TYPE workqueue_queue_duration_seconds histogram
workqueue_queue_duration_seconds_bucket{name=\"a\",le=\"0.1\"} 3
workqueue_queue_duration_seconds_bucket{name=\"a\",le=\"1\"} 5
workqueue_queue_duration_seconds_bucket{name=\"a\",le=\"10\"} 5
workqueue_queue_duration_seconds_bucket{name=\"a\",le=\"+Inf\"} 5
workqueue_queue_duration_seconds_bucket{name=\"b\",le=\"0.1\"} 4
workqueue_queue_duration_seconds_bucket{name=\"b\",le=\"+Inf\"} 4
";
        assert_eq!(longest_wait_in_metrics(page), Some(1.0));
        let beyond = "workqueue_queue_duration_seconds_bucket{name=\"b\",le=\"+Inf\"} 5\n";
        assert_eq!(longest_wait_in_metrics(&format!("{page}{beyond}")), None, "JSON has no infinity");
        assert_eq!(longest_wait_in_metrics(""), None);
    }

    #[test]
    fn the_longest_wait_of_all_queues_is_found_in_a_log() {
        let log = "\
I0102 03:04:05.250000      17 mod.rs:1] \"Longest wait of a key\" queue=\"deployment\" longestWaitSeconds=0.25
I0102 03:04:05.250000      17 mod.rs:1] \"Longest wait of a key\" queue=\"replicaset\" longestWaitSeconds=1.5
I0102 03:04:05.250000      17 mod.rs:1] \"Stopped\"
";
        assert_eq!(longest_wait_in_log(log), Some(1.5));
        assert_eq!(longest_wait_in_log("Stopped\n"), None);
    }

    #[test]
    fn both_managers_log_when_the_last_cache_is_synced() {
        let peer = "\
I1122 23:59:59.500000   17 serving.go:1] Generated self-signed cert
I1122 23:59:59.800000   17 shared_informer.go:1] \"Caches are synced\" controller=\"deployment\"
I1122 00:00:01.000000   17 shared_informer.go:1] \"Caches are synced\" controller=\"ReplicaSet\"
I1122 00:00:02.000000   17 something.go:1] Went on
";
        assert_eq!(caches_full_in_log(peer), Some(1.5));
        let ours = "\
I0102 03:04:05.250000      17 mod.rs:1] \"Starting controller\"
I0102 03:04:06.500000      17 supervise.rs:2] \"Caches are synced\" controller=\"replicaset-controller\"
";
        assert_eq!(caches_full_in_log(ours), Some(1.25));
        assert_eq!(caches_full_in_log("I1122 23:59:59.500000   17 serving.go:1] Serving\n"), None);
    }

    #[test]
    fn allocators_report_what_is_live_and_what_they_hold_beside() {
        let page = "\
go_memstats_heap_alloc_bytes 1e+07
go_memstats_heap_released_bytes 5e+06
go_memstats_heap_sys_bytes 3e+07
";
        assert_eq!(heap_in_metrics(page), Some(Heap { live: 1e7, held: 1.5e7 }));
        let log = "\
___ Begin jemalloc statistics ___
Allocated: 10000, active: 20480, metadata: 4096 (n_thp 0, edata 1, rtree 2), resident: 40000, mapped: 65536, retained: 7
Background threads: 1, num_runs: 5, run_interval: 0 ns
";
        assert_eq!(heap_in_log(log), Some(Heap { live: 10_000.0, held: 25_904.0 }));
    }
}
