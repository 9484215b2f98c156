//! Slow start: how many pods are created at once.

/// Sizes of the batches in which a number of pods is created: 1, 2, 4, 8, …
///
/// A template that the API refuses, or a quota that is used up, refuses every pod alike. So the first calls are few,
/// and no batch is started after one in which a call failed: of 100 pods for which there is a quota of 10, at most
/// 15 are tried.
#[derive(Debug)]
pub(super) struct SlowStart {
    left: usize,
    size: usize,
}

impl SlowStart {
    /// Batches that come to `count` in all, if nothing fails.
    pub(super) const fn of(count: usize) -> Self {
        Self { left: count, size: 1 }
    }

    /// The size of the next batch; absent when all calls were made.
    pub(super) fn next_batch(&mut self) -> Option<usize> {
        let size = self.size.min(self.left);
        self.left -= size;
        self.size = size * 2;
        (size > 0).then_some(size)
    }

    /// Ends after the batch in hand, because a call of it failed.
    pub(super) const fn stop(&mut self) {
        self.left = 0;
    }
}
