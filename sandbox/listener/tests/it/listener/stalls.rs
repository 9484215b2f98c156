use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kcm_sandbox_apiserver::CONFIG_MAPS;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::listener::support::{Served, served};

/// More than a socket of the system holds, in events that are each more than a buffer of ours.
const EVENTS: usize = 300;
const EVENT: usize = 200_000;

fn flood(served: &Served) {
    let text = "x".repeat(EVENT);
    for number in 0..EVENTS {
        served.create_config_map(&format!("map-{number}"), &text);
    }
}

/// Waits until nobody watches config maps, on a clock that jumps.
async fn cut_off(served: &mut Served) {
    served.run_clock();
    while served.sandbox.open_watches(&CONFIG_MAPS) > 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    served.hold_clock();
}

/// Returns the size of the rest of a body.
async fn rest_of(mut body: Incoming) -> usize {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.into_data().map_or(0, |data| data.len());
    }
    read
}

#[tokio::test(start_paused = true)]
async fn a_watch_over_http2_that_is_not_read_keeps_little_and_holds_up_no_other() {
    let mut served = served().await;
    let mut http = served.http2().await;
    let watch = http.watch(&served).await;
    served.create_config_map("first", "");
    flood(&served);
    served.assert_serves().await;
    // Another stream of the connection is served, too.
    assert_eq!(http.get(&served, "/api").await.code, 200);
    served.stop();
    let kept = rest_of(watch).await;
    assert!(kept < EVENTS * EVENT / 4, "{kept} bytes were kept for a client that reads nothing");
}

#[tokio::test(start_paused = true)]
async fn a_watch_over_http1_that_is_not_read_is_cut_off() {
    let mut served = served().await;
    let mut stream = served.raw().await;
    let head = served.head("GET", "/api/v1/namespaces/default/configmaps?watch=true");
    stream.write_all(format!("{head}\r\n").as_bytes()).await.expect("it listens");
    stream.read_exact(&mut [0; 12]).await.expect("it is answered");
    flood(&served);
    served.assert_serves().await;
    cut_off(&mut served).await;
    let mut kept = Vec::new();
    drop(stream.read_to_end(&mut kept).await);
    assert!(kept.len() < EVENTS * EVENT / 4, "{} bytes were kept", kept.len());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_read_is_cut_off() {
    let mut served = served().await;
    flood(&served);
    let mut stream = served.raw().await;
    let head = served.head("GET", "/api/v1/namespaces/default/configmaps");
    stream.write_all(format!("{head}\r\n").as_bytes()).await.expect("it listens");
    stream.read_exact(&mut [0; 12]).await.expect("it is answered");
    served.run_clock();
    tokio::time::sleep(Duration::from_secs(90)).await;
    served.hold_clock();
    let mut kept = Vec::new();
    drop(stream.read_to_end(&mut kept).await);
    assert!(kept.len() < EVENTS * EVENT / 2, "{} bytes were kept", kept.len());
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_is_not_a_stalled_one() {
    let mut served = served().await;
    for is_http2 in [false, true] {
        let mut http = if is_http2 { served.http2().await } else { served.http1().await };
        let mut watch = http.watch(&served).await;
        served.create_config_map("a", "");
        watch.frame().await.expect("it goes on").expect("there is an event");
        served.run_clock();
        tokio::time::sleep(Duration::from_mins(10)).await;
        served.hold_clock();
        served
            .sandbox
            .delete(&CONFIG_MAPS, &kcm_sandbox_apiserver::ObjectKey::namespaced("default", "a"))
            .expect("it is there");
        let last = watch.frame().await.expect("it goes on").expect("there is an event");
        assert!(last.into_data().expect("it is data").starts_with(b"{\"type\":\"DELETED\""));
    }
}
