//! The memory that hostile clients cost, measured in a process of its own.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Port;
use super::client::Client;
use super::silent::silent_api_server;

/// Longer than anything takes on a busy machine; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The name of this test.
const NAME: &str = "tests::memory::requests_without_credentials_cost_little_memory";

/// The arguments of the port in the child process, one a line.
const ARGUMENTS: &str = "KCM_TEST_PORT_ARGUMENTS";

const CONNECTIONS: usize = 32;
const STREAMS: usize = 100;

/// Largest growth for these connections: twice the growth that was measured. A port without bounds grows by 100 MB.
const MOST_KIB: usize = 8 * 1024;

/// A process that serves a port.
struct Served {
    process: Child,
    client: Client,
}

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let program = std::env::current_exe().expect("it is running");
        let mut process = Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it is a program");
        let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let address = output.lines().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("serves ")?;
            address.parse().ok()
        });
        Self { process, client: Client::of(address.expect("it says its address")) }
    }

    /// The largest resident memory so far.
    fn peak_kib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it is running");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel counts it");
        peak.trim().trim_end_matches(" kB").parse().expect("it is a number")
    }

    async fn is_served(&self) {
        let answer = timeout(PATIENCE, self.client.get("/healthz")).await.expect("it answers");
        assert_eq!((answer.code, answer.body.as_str()), (200, "ok"));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Serves a port until the parent ends.
async fn serve(arguments: &str) {
    let arguments: Vec<&str> = arguments.lines().collect();
    let port = Port::start(&arguments).await;
    let mut output = std::io::stdout();
    writeln!(output, "\nserves {}", port.client.address).expect("the parent reads it");
    output.flush().expect("the parent reads it");
    // The port has a thread of its own.
    let _ended = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Connections of HTTP/2 with many requests, whose client accepts no byte of a body.
#[derive(Default)]
struct Attack {
    connections: JoinSet<()>,
    /// Without them the client would give its requests up.
    waiting: Vec<h2::client::ResponseFuture>,
    answered: Vec<http::Response<h2::RecvStream>>,
}

impl Attack {
    /// Sends the requests. Returns when the server has read them, and has answered them if `is_answered`.
    async fn start(client: &Client, connections: usize, is_answered: bool, path: impl Fn(usize) -> String) -> Self {
        let mut attack = Self::default();
        for connection in 0..connections {
            let stream = client.tls(&["h2"]).await.expect("TLS is served");
            let builder = h2::client::Builder::new().initial_window_size(0).handshake::<_, bytes::Bytes>(stream).await;
            let (sender, mut driver) = builder.expect("HTTP/2 is served");
            let mut pings = driver.ping_pong().expect("it is the first");
            attack.connections.spawn(async move { drop(driver.await) });
            let mut answers = Vec::new();
            let mut sender = Some(sender);
            for stream in 0..STREAMS {
                // The server may have closed the connection.
                sender = match sender.take() {
                    Some(ready) => ready.ready().await.ok(),
                    None => break,
                };
                let Some(sender) = &mut sender else { break };
                let uri = format!("https://localhost{}", path(connection * STREAMS + stream));
                let request = http::Request::get(uri).body(()).expect("it is a request");
                let Ok((answer, _)) = sender.send_request(request, true) else { break };
                answers.push(answer);
            }
            // The server reads frames in their order.
            drop(timeout(PATIENCE, pings.ping(h2::Ping::opaque())).await.expect("it answers"));
            if is_answered {
                let answers = timeout(PATIENCE, join_all(answers)).await.expect("it answers");
                // A request may be refused.
                attack.answered.extend(answers.into_iter().filter_map(Result::ok));
            } else {
                attack.waiting.append(&mut answers);
            }
        }
        attack
    }
}

/// `START`, and so many bytes of one text.
fn long(start: &str, of: &str, bytes: usize) -> String {
    format!("{start}{}", of.repeat(bytes / of.len()))
}

#[tokio::test]
async fn requests_without_credentials_cost_little_memory() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        return serve(&arguments).await;
    }
    // With a silent API server, requests wait for reviews.
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (_listener, [skip_lookup, reviews]) = silent_api_server(folder.path()).await;
    for arguments in [&[&*skip_lookup][..], &[&*skip_lookup, &*reviews]] {
        let is_answered = arguments.len() == 1;
        let served = Served::start(arguments);
        // The first request of each kind loads the program's code.
        for path in ["/healthz/a", "/healthz?verbose&exclude=a"] {
            drop(Attack::start(&served.client, 1, is_answered, |_| path.to_owned()).await);
        }
        served.is_served().await;
        let before = served.peak_kib();
        for (start, of) in [("/healthz/", "a"), ("/metrics/", "&"), ("/healthz?verbose&exclude=", "%01")] {
            // A header that is admitted, and a header that is too large.
            for bytes in [7_000, 30_000] {
                let path = |number| long(&format!("{start}{number}"), of, bytes);
                let attack = Attack::start(&served.client, CONNECTIONS, is_answered, path).await;
                served.is_served().await;
                let (grown, requests) = (served.peak_kib() - before, attack.waiting.len() + attack.answered.len());
                assert!(
                    grown < MOST_KIB,
                    "{grown} KiB for {requests} requests of {start}{of}…, answered: {is_answered}"
                );
            }
        }
    }
}
