use std::time::Duration;

use futures::future::join_all;
use http_body_util::Full;
use kcm_sandbox_apiserver::CONFIG_MAPS;
use kcm_sandbox_listener::ListenOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::listener::support::{read_to_end, served, served_with};

#[tokio::test(start_paused = true)]
async fn a_thousand_connections_at_once_are_served() {
    let served = served_with(ListenOptions { connections: 1000, ..ListenOptions::default() }).await;
    let mut clients = join_all((0..1000).map(|_| served.http1())).await;
    let answers = join_all(clients.iter_mut().map(|http| http.get(&served, "/api/v1/namespaces/default"))).await;
    assert!(answers.iter().all(|answer| answer.code == 200));
    drop(clients);
    served.assert_serves().await;
}

#[tokio::test(start_paused = true)]
async fn silent_connections_end_and_leave_room_for_others() {
    let mut served = served_with(ListenOptions { connections: 100, ..ListenOptions::default() }).await;
    let mut busy = served.http2().await;
    let _watch = busy.watch(&served).await;
    let silent = join_all((0..1000).map(|_| served.tcp())).await;
    served.run_clock();
    join_all(silent.into_iter().map(async |mut stream| assert_eq!(read_to_end(&mut stream).await, ""))).await;
    served.hold_clock();
    served.assert_serves().await;
    assert_eq!(served.sandbox.open_watches(&CONFIG_MAPS), 1, "the watch goes on");
}

#[tokio::test(start_paused = true)]
async fn a_connection_beyond_the_limit_is_served_when_another_ends() {
    let served = served_with(ListenOptions { connections: 2, ..ListenOptions::default() }).await;
    let mut busy = [served.http1().await, served.http2().await];
    let watches = join_all(busy.iter_mut().map(|http| http.watch(&served))).await;
    let mut late = std::pin::pin!(served.assert_serves());
    tokio::select! {
        biased;
        () = &mut late => panic!("there is no room"),
        () = async { for _ in 0..1000 { tokio::task::yield_now().await } } => {}
    }
    assert_eq!(served.sandbox.open_watches(&CONFIG_MAPS), 2);
    drop((watches, busy));
    late.await;
}

#[tokio::test(start_paused = true)]
async fn one_connection_carries_hundreds_of_watches() {
    let served = served().await;
    let mut http = served.http2().await;
    let mut watches = Vec::new();
    for _ in 0..400 {
        watches.push(http.watch(&served).await);
    }
    assert_eq!(served.sandbox.open_watches(&CONFIG_MAPS), 400);
    assert_eq!(http.get(&served, "/api").await.code, 200);
    drop(watches);
}

/// Returns the time until a connection that has sent `bytes`, after or before the handshake, ends by itself.
async fn lasts(protocol: Option<&[u8]>, bytes: &[u8]) -> Duration {
    let mut served = served().await;
    let mut plain;
    let mut tls;
    let stream: &mut dyn Stream = if let Some(protocol) = protocol {
        tls = served.tls("localhost", protocol).await.expect("the certificate is trusted");
        &mut tls
    } else {
        plain = served.tcp().await;
        &mut plain
    };
    stream.write_all(bytes).await.expect("it listens");
    let since = Instant::now();
    served.run_clock();
    let mut rest = Vec::new();
    drop(stream.read_to_end(&mut rest).await);
    let lasted = since.elapsed();
    served.hold_clock();
    served.assert_serves().await;
    lasted
}

trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin {}
impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Stream for S {}

/// Name, negotiated protocol of TLS, sent bytes, and lifetime of the connection.
type Silence<'a> = (&'a str, Option<&'a [u8]>, &'a [u8], Duration);

#[tokio::test(start_paused = true)]
async fn connections_that_say_nothing_end() {
    let (headers, idle) = (Duration::from_secs(32), Duration::from_secs(90));
    let rows: [Silence<'_>; 5] = [
        ("nothing", None, b"", headers),
        ("half a handshake", None, b"\x16\x03\x01\x02\x00\x01", headers),
        ("no request", Some(b"http/1.1"), b"", headers),
        ("half a header", Some(b"http/1.1"), b"GET /api HTTP/1.1\r\nHost:", headers),
        ("no preface", Some(b"h2"), b"", idle),
    ];
    for (name, protocol, bytes, limit) in rows {
        let lasted = lasts(protocol, bytes).await;
        // Idleness is looked for from time to time.
        assert!(lasted >= limit && lasted < limit + Duration::from_secs(15), "{name}: {lasted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_ends_with_a_time_out() {
    let mut served = served().await;
    let mut stream = served.raw().await;
    let head = served.head("POST", "/api/v1/namespaces/default/configmaps");
    stream.write_all(format!("{head}Content-Length: 10\r\n\r\n").as_bytes()).await.expect("it listens");
    served.run_clock();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("it is answered");
    assert_eq!(&answer, b"HTTP/1.1 504");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_leaves_no_watch_behind() {
    let served = served().await;
    for mut http in served.both().await {
        let watch = http.watch(&served).await;
        assert_eq!(served.sandbox.open_watches(&CONFIG_MAPS), 1);
        drop((watch, http));
        while served.sandbox.open_watches(&CONFIG_MAPS) > 0 {
            tokio::task::yield_now().await;
        }
    }
    let mut http = served.http1().await;
    let request = served.request("GET", "/api/v1/pods").body(Full::default()).expect("it is a request");
    assert_eq!(http.ask(request).await.code, 200);
}
