//! Slow start: the batches in which pods are created.

const LARGEST: usize = 500;

/// The sizes of the batches in which pods are created: 1, 2, 4, 8, …, at most 500.
///
/// An invalid template or an exhausted quota rejects every pod. So the first batches are small, and no batch starts after
/// one in which a request failed: of 100 pods with a quota of 10, at most 15 are tried.
#[derive(Debug)]
pub(crate) struct SlowStart {
    left: usize,
    size: usize,
}

impl SlowStart {
    pub(crate) const fn of(count: usize) -> Self {
        Self { left: count, size: 1 }
    }

    /// Returns the size of the next batch; `None` after the last.
    pub(crate) fn next_batch(&mut self) -> Option<usize> {
        let size = self.size.min(self.left);
        self.left -= size;
        self.size = LARGEST.min(size * 2);
        (size > 0).then_some(size)
    }

    /// Ends with the current batch, after a failure.
    pub(crate) const fn stop(&mut self) {
        self.left = 0;
    }
}
