//! The jobs that read scales and metrics.

use crate::horizontal_pod_autoscaler::gather::{Gathering, Job};

fn size_of_future<'a, F: Future>(_: impl FnOnce(&'a Gathering, Job) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn a_job_that_waits_takes_little_memory() {
    let size = size_of_future(Gathering::perform);
    assert!(size <= 1536, "each autoscaler that waits for an API takes {size} bytes beside its key and requests");
}
