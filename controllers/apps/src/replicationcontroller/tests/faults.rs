//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, PODS, Status, Verb};

use super::{CONTROLLERS, Cluster, DESCRIPTOR, has, scale, web};
use crate::tests::cluster::environment;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment(&[DESCRIPTOR]),
        async |cluster| {
            cluster.watches(&[PODS, CONTROLLERS]).await;
            cluster.sandbox().create(&CONTROLLERS, web(3)).unwrap();
            has(cluster, 3).await;
            scale(cluster, 1);
            has(cluster, 1).await;
            scale(cluster, 2);
            has(cluster, 2).await;
            // A later start has nothing to do.
            cluster.settle().await;
        },
    )
    .await;
    assert!(writes >= 9, "3 creations, 2 deletions, 1 creation, and a status after each step: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_creates_no_second_pod() {
    for number in 0..6 {
        let cluster = Cluster::start(|_| {}).await;
        let lost = cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        cluster.create(web(3));
        has(&cluster, 3).await;
        scale(&cluster, 1);
        has(&cluster, 1).await;
        cluster.advance(MINUTE).await;
        assert_eq!((cluster.pods().len(), lost.hits()), (1, 1), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_minutes_behind_creates_no_second_pod() {
    let cluster = Cluster::start_stalling(|sandbox| sandbox.faults().delay_events(&PODS, 3 * MINUTE)).await;
    cluster.create(web(3));
    cluster.eventually("they are created", |_| cluster.pods().len() == 3).await;
    scale(&cluster, 5);
    has(&cluster, 5).await;
    assert_eq!((cluster.requests("POST").len(), cluster.requests("DELETE").len()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_pods_and_no_more() {
    let cluster = Cluster::start(|sandbox| {
        let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(30);
        sandbox.faults().inject(busy.fail(Status::too_many_requests(1)));
    })
    .await;
    cluster.create(web(3));
    has(&cluster, 3).await;
    assert_eq!(cluster.pods().len(), 3);
}
