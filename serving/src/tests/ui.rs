//! The paths of the status page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Port;
use super::client::Client;
use crate::health::Check;

const OPEN: &str = "--authorization-always-allow-paths=/debug/*";

/// The paths that the page requests, as its scripts name them.
const PATHS: &[&str] = &["/debug/ui", "/debug/ui/settings", "/debug/ui/events"];

#[tokio::test]
async fn the_page_is_served_under_its_flag_to_those_who_may_see_it() {
    let port = Port::start(&[OPEN]).await;
    for path in PATHS {
        assert_eq!(port.client.get(path).await.code, 404, "{path}");
    }
    let port = Port::start(&["--debug-ui"]).await;
    for path in PATHS {
        assert_eq!(port.client.get(path).await.code, 403, "{path}");
    }
    let port = Port::start(&["--debug-ui", OPEN]).await;
    let page = port.client.get("/debug/ui").await;
    assert_eq!(page.code, 200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-cache, private",
    ] {
        assert!(page.head.contains(header), "{header} is not in {}", page.head);
    }
    assert!(page.body.starts_with("<!doctype html>") && page.body.trim_end().ends_with("</html>"));
}

#[tokio::test]
async fn settings_are_shown_with_their_origin() {
    let port = Port::start(&["--debug-ui", OPEN, "--kube-api-qps=50"]).await;
    let shown: Value = serde_json::from_str(&port.client.get("/debug/ui/settings").await.body).expect("it is JSON");
    let settings = shown["settings"].as_array().expect("it is a list");
    let find = |name: &str| settings.iter().find(|setting| setting["name"] == name).unwrap_or(&Value::Null);
    let qps = find("--kube-api-qps");
    assert_eq!(
        (&qps["value"], &qps["origin"], &qps["isDefault"]),
        (&"50".into(), &"--kube-api-qps".into(), &false.into())
    );
    let burst = find("--kube-api-burst");
    assert_eq!((&burst["value"], &burst["isDefault"]), (&"30".into(), &true.into()));
}

/// A stream of events.
struct Events {
    stream: TlsStream<TcpStream>,
    sent: Vec<u8>,
}

impl Events {
    async fn open(client: &Client) -> Self {
        let mut stream = client.tls(&["http/1.1"]).await.expect("TLS is served");
        let request = b"GET /debug/ui/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request).await.expect("it listens");
        Self { stream, sent: Vec::new() }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.sent).into_owned()
    }

    /// Waits for one more event with a state.
    async fn next_state(&mut self) {
        let states = |events: &Self| events.text().matches("event: state\n").count();
        let before = states(self);
        while states(self) == before {
            let read = self.stream.read_buf(&mut self.sent).await.expect("it goes on");
            assert_ne!(read, 0, "{}", self.text());
        }
    }
}

#[tokio::test]
async fn a_page_that_panics_is_fed_again_and_the_port_goes_on() {
    let panics = Arc::new(AtomicBool::new(false));
    let panics_once = Arc::clone(&panics);
    let check = Check::new("fragile", move || {
        assert!(!panics_once.swap(false, Ordering::Relaxed), "as the test wants it");
        Ok(())
    });
    let port = Port::start_with(&["--debug-ui", "--authorization-always-allow-paths=/*"], vec![check]).await;
    let mut events = Events::open(&port.client).await;
    events.next_state().await;
    panics.store(true, Ordering::Relaxed);
    while panics.load(Ordering::Relaxed) {
        events.next_state().await;
    }
    assert_eq!(port.client.get("/healthz").await.code, 200);
    let page = port.client.get("/metrics").await.body;
    assert!(page.contains("manager_task_panics_total{task=\"serving-page\"} 1\n"), "{page}");
}

#[tokio::test]
async fn a_stream_of_events_ends_when_the_port_is_closed() {
    let Port { serving, client } = Port::start(&["--debug-ui", OPEN]).await;
    let mut events = Events::open(&client).await;
    events.next_state().await;
    let Events { mut stream, mut sent } = events;
    let head = String::from_utf8_lossy(&sent).to_ascii_lowercase();
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    serving.stop().await;
    stream.read_to_end(&mut sent).await.expect("it ends as it should");
    // The last chunk: the stream was ended, and not cut.
    assert!(sent.ends_with(b"\r\n0\r\n\r\n"));
}
