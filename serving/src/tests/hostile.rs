//! Hostile clients: their cost is bounded, and other clients are served meanwhile.

use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Port;
use super::client::Client;
use super::silent::silent_api_server;
use crate::connection_limit::{MOST_UNAUTHENTICATED, UNAUTHENTICATED_HEADER_BYTES};
use crate::thread::MOST_CONNECTIONS;

/// Longer than anything takes on a busy machine; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// A probe as the kubelet sends it succeeds.
async fn is_served(client: &Client) {
    let answer = timeout(PATIENCE, client.get("/healthz")).await.expect("it answers");
    assert_eq!((answer.code, answer.body.as_str()), (200, "ok"));
}

/// Returns `true` if the server has closed the connection.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    matches!(timeout(PATIENCE, stream.read(&mut byte)).await, Ok(Ok(0) | Err(_)))
}

/// More connections than are served at a time, half of them in the middle of a handshake.
#[tokio::test]
async fn idle_connections_never_keep_a_probe_out() {
    let port = Port::start(&[]).await;
    let mut idle = Vec::new();
    for number in 0..MOST_CONNECTIONS + 200 {
        let mut stream = port.client.tcp().await;
        if number % 2 == 0 {
            // The begin of a record of a handshake.
            stream.write_all(&[22, 3, 1, 2]).await.expect("it listens");
        }
        idle.push(stream);
        if number % 100 == 0 {
            is_served(&port.client).await;
        }
    }
    is_served(&port.client).await;
    // The oldest had to go.
    assert!(is_closed(&mut idle[0]).await && is_closed(&mut idle[1]).await);
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let port = Port::start(&[]).await;
    let mut stream = port.client.tls(&["http/1.1"]).await.expect("TLS is served");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ").await.expect("it listens");
    let line = vec![b'a'; 16 * 1024];
    let mut sent = 0;
    // The server stops reading, or closes.
    while sent < 64 && matches!(timeout(PATIENCE, stream.write_all(&line)).await, Ok(Ok(()))) {
        sent += 1;
    }
    let mut answer = Vec::new();
    drop(timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it closes"));
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    is_served(&port.client).await;
}

#[tokio::test]
async fn headers_of_clients_that_are_not_authenticated_are_small() {
    let port = Port::start(&[]).await;
    for (bytes, code) in [(UNAUTHENTICATED_HEADER_BYTES - 512, 200), (UNAUTHENTICATED_HEADER_BYTES, 431)] {
        let line = "a".repeat(bytes);
        assert_eq!(port.client.send("GET", "/healthz", &[("x", &line)]).await.code, code);
        let (sender, _driver) = http2(&port.client).await;
        let mut sender = sender.ready().await.expect("it is open");
        let mut large = request("/healthz");
        large.headers_mut().insert("x", line.parse().expect("it is a header"));
        let (answer, _) = sender.send_request(large, true).expect("it is open");
        assert_eq!(answer.await.expect("it answers").status(), code);
    }
}

#[tokio::test]
async fn a_connection_without_an_authenticated_user_has_few_streams() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (_listener, flags) = silent_api_server(folder.path()).await;
    let port = Port::start(&flags.each_ref().map(String::as_str)).await;
    let (mut sender, _driver) = http2(&port.client).await;
    let mut answers = Vec::new();
    for number in 0..10 {
        sender = sender.ready().await.expect("it is open");
        let (answer, _) = sender.send_request(request(&format!("/{number}")), true).expect("it is open");
        answers.push(answer);
    }
    // The first ones wait for their reviews.
    for answer in answers.drain(MOST_UNAUTHENTICATED..) {
        let refused = timeout(PATIENCE, answer).await.expect("it does not wait").expect_err("there are too many");
        // As for streams beyond the settings: clients repeat the request by themselves.
        assert_eq!(refused.reason(), Some(h2::Reason::REFUSED_STREAM));
    }
    is_served(&port.client).await;
}

#[tokio::test]
async fn a_body_without_end_is_not_read() {
    let port = Port::start(&[]).await;
    let mut stream = port.client.tls(&["http/1.1"]).await.expect("TLS is served");
    let head = b"PUT /healthz HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head).await.expect("it listens");
    let chunk = [b"10000\r\n".to_vec(), vec![b'a'; 0x10000], b"\r\n".to_vec()].concat();
    let flood = async {
        let mut sent = 0_usize;
        while stream.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
            assert!(sent < 64 << 20, "it reads without end");
        }
    };
    timeout(PATIENCE, flood).await.expect("it closes");
    is_served(&port.client).await;
}

/// An HTTP/2 connection, and the task that drives it.
async fn http2(client: &Client) -> (h2::client::SendRequest<Bytes>, JoinSet<()>) {
    let stream = client.tls(&["h2"]).await.expect("TLS is served");
    let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2 is served");
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (sender, driver)
}

fn request(path: &str) -> http::Request<()> {
    http::Request::get(format!("https://localhost{path}")).body(()).expect("it is a request")
}

/// The attack of CVE-2023-44487.
#[tokio::test]
async fn a_rapid_reset_ends_the_connection() {
    let port = Port::start(&[]).await;
    let (mut sender, mut driver) = http2(&port.client).await;
    let flood = async {
        let mut opened = 0_usize;
        while let Ok(ready) = sender.clone().ready().await {
            sender = ready;
            let Ok((_, mut body)) = sender.send_request(request("/healthz"), false) else { break };
            body.send_reset(h2::Reason::CANCEL);
            opened += 1;
            assert!(opened < 100_000, "it never ends");
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, flood).await.expect("the connection ends");
    timeout(PATIENCE, driver.join_next()).await.expect("the connection ends");
    is_served(&port.client).await;
}

#[tokio::test]
async fn an_anonymous_client_gets_one_answer_on_a_connection_of_http_2() {
    let port = Port::start(&[]).await;
    let (sender, mut driver) = http2(&port.client).await;
    let mut sender = sender.ready().await.expect("it is open");
    let (answer, _) = sender.send_request(request("/healthz"), true).expect("it is open");
    assert_eq!(answer.await.expect("it answers").status(), 200);
    drop(sender);
    timeout(PATIENCE, driver.join_next()).await.expect("the server closes the connection");
}

#[tokio::test]
async fn no_more_streams_are_open_than_the_flag_says() {
    let port = Port::start(&["--http2-max-streams-per-connection=7"]).await;
    let stream = port.client.tls(&["h2"]).await.expect("TLS is served");
    let (_sender, mut connection) = h2::client::handshake(stream).await.expect("HTTP/2 is served");
    let limited = std::future::poll_fn(|cx| match connection.poll_unpin(cx) {
        Poll::Pending if connection.max_concurrent_send_streams() != 7 => Poll::Pending,
        Poll::Pending | Poll::Ready(_) => Poll::Ready(()),
    });
    timeout(PATIENCE, limited).await.expect("the settings of the server arrive");
    assert_eq!(connection.max_concurrent_send_streams(), 7);
}

/// With paused time: deadlines, without waiting for them.
mod deadlines {
    use super::*;
    use crate::connection::HEADERS;
    use crate::tests::InProcess;

    /// A handshake that never begins, and a header that never ends.
    #[tokio::test(start_paused = true)]
    async fn what_does_not_arrive_is_not_waited_for() {
        let port = InProcess::start(&[]).await;
        let mut silent = port.client.tcp().await;
        let mut slow = port.client.tls(&["http/1.1"]).await.expect("TLS is served");
        slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: loc").await.expect("it listens");
        let begun = tokio::time::Instant::now();
        let mut byte = [0];
        assert_eq!(silent.read(&mut byte).await.expect("it is closed"), 0);
        drop(slow.read(&mut byte).await);
        assert!(begun.elapsed() >= HEADERS && begun.elapsed() < 2 * HEADERS, "{:?}", begun.elapsed());
    }
}
