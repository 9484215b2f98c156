//! An API server that is busy.

use std::sync::atomic::{AtomicUsize, Ordering};

use kcm_sandbox_apiserver::{Fault, Status};

use super::with_image;
use crate::deployment::tests::cluster::Cluster;
use crate::deployment::tests::fixtures::deployment;

#[tokio::test(start_paused = true)]
async fn an_api_server_that_answers_429_to_a_tenth_of_all_requests_ends_the_same_without_a_failed_creation() {
    for offset in 0..10 {
        let cluster = Cluster::start_both(|_| {}).await;
        let count = AtomicUsize::new(offset);
        let is_tenth = move |_: &_| count.fetch_add(1, Ordering::Relaxed).is_multiple_of(10);
        let busy = Fault::on_any().when(is_tenth).fail(Status::too_many_requests(1));
        let busy = cluster.sandbox().faults().inject(busy);
        cluster.create(&deployment("web").replicas(10).rolling(3, 3));
        cluster.run_until_complete().await;
        cluster.patch(&with_image("image:2"));
        cluster.run_until_complete().await;
        assert!(busy.hits() > 3, "offset {offset}: {}", busy.hits());
        assert_eq!(cluster.sizes(), [("image:1".to_owned(), 0), ("image:2".to_owned(), 10)], "offset {offset}");
        assert_eq!(cluster.pods().len(), 10, "offset {offset}");
        let warnings = cluster.events().into_iter().filter(|(type_, _, _)| type_ == "Warning");
        assert_eq!(warnings.collect::<Vec<_>>(), [], "offset {offset}");
    }
}
