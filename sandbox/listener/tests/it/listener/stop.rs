use std::time::Duration;

use kcm_sandbox_apiserver::{CONFIG_MAPS, Fault, Verb};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::listener::support::{read_to_end, served};

#[tokio::test(start_paused = true)]
async fn stopping_ends_idle_connections_and_watches_at_once() {
    let mut served = served().await;
    let (mut idle, mut silent) = (served.raw().await, served.tcp().await);
    let mut http = served.http2().await;
    let watch = http.watch(&served).await;
    // The clock stands still: a deadline would never come.
    let since = Instant::now();
    served.stop();
    served.ended().await;
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(read_to_end(&mut idle).await, "");
    assert_eq!(read_to_end(&mut silent).await, "");
    assert_eq!(served.sandbox.open_watches(&CONFIG_MAPS), 0);
    assert!(TcpStream::connect(served.address).await.is_err(), "nobody listens any more");
    drop(watch);
}

/// Returns for HTTP/1.1 and for HTTP/2 if a request of this duration gets its response although the listener stops.
async fn answered(takes: Duration) -> (bool, bool) {
    let mut served = served().await;
    served.sandbox.faults().inject(Fault::on(Verb::Get).delay(takes));
    let [mut one, mut two] = served.both().await;
    let request = || {
        let request = served.request("GET", "/api/v1/namespaces/default");
        request.body(http_body_util::Full::default()).expect("it is a request")
    };
    let mut answers = std::pin::pin!(futures::future::join(one.try_send(request()), two.try_send(request())));
    while served.sandbox.requests().len() < 2 {
        tokio::select! {
            biased;
            _ = &mut answers => panic!("it takes longer"),
            () = tokio::task::yield_now() => {}
        }
    }
    served.run_clock();
    served.stop();
    let ((one, two), ()) = futures::join!(answers, served.ended());
    (one.is_ok(), two.is_ok())
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_requests_finish_that_are_at_work() {
    assert_eq!(answered(Duration::from_secs(1)).await, (true, true));
}

#[tokio::test(start_paused = true)]
async fn stopping_cuts_requests_that_take_long() {
    assert_eq!(answered(Duration::from_mins(1)).await, (false, false));
}
