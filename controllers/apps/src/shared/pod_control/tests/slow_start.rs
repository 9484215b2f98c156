//! Slow start.

use crate::shared::pod_control::slow_start::SlowStart;

/// The batches tried when call number `fails`, counted from 0, is the first to fail.
fn batches(count: usize, fails: Option<usize>) -> Vec<usize> {
    let mut slow_start = SlowStart::of(count);
    let (mut sizes, mut tried) = (Vec::new(), 0);
    while let Some(size) = slow_start.next_batch() {
        sizes.push(size);
        tried += size;
        if fails.is_some_and(|fails| fails < tried) {
            slow_start.stop();
        }
    }
    sizes
}

#[test]
fn batches_double_and_end_with_a_failure() {
    struct Case {
        name: &'static str,
        count: usize,
        fails: Option<usize>,
        batches: &'static [usize],
    }
    for Case { name, count, fails, batches: expected } in [
        Case { name: "nothing to do", count: 0, fails: None, batches: &[] },
        Case { name: "one", count: 1, fails: None, batches: &[1] },
        Case { name: "the last batch is what is left", count: 10, fails: None, batches: &[1, 2, 4, 3] },
        Case { name: "every call fails", count: 10, fails: Some(0), batches: &[1] },
        Case { name: "the first five succeed", count: 10, fails: Some(5), batches: &[1, 2, 4] },
        Case { name: "100 pods and a quota of 10", count: 100, fails: Some(10), batches: &[1, 2, 4, 8] },
        Case { name: "a whole burst", count: 500, fails: None, batches: &[1, 2, 4, 8, 16, 32, 64, 128, 245] },
    ] {
        assert_eq!(batches(count, fails), expected, "{name}");
    }
}

#[test]
fn no_batch_is_larger_than_500() {
    assert_eq!(batches(2000, None), [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 489]);
}
