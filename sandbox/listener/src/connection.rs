//! One connection, from its first byte to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::activity::{Activity, Order, PIECE};
use crate::authn::Authn;
use crate::connection_limit::Slot;
use crate::upload::{Tasks, Upload};

/// How long a client may take for the TLS handshake, and on HTTP/1.1 for each header, the time before it included.
///
/// # Upstream
/// `ReadHeaderTimeout` in `apiserver/pkg/server/secure_serving.go`
pub(crate) const HEADERS: Duration = Duration::from_secs(32);
/// How long a connection stays without a request.
///
/// # Upstream
/// `IdleTimeout` in the same place
pub(crate) const IDLE: Duration = Duration::from_secs(90);
/// How long a client may leave untaken what it was handed before its connection is cut.
pub(crate) const STALL: Duration = Duration::from_mins(1);
/// How often idleness and stalls are looked for.
const TICK: Duration = Duration::from_secs(5);
/// How long a connection that is too many may take to be told so.
const REFUSAL: Duration = Duration::from_secs(5);

/// The largest header, all lines together.
const HEADER_BYTES: usize = 64 * 1024;
/// Watches of one HTTP/2 connection. Upstream grants 100, of which Go's clients know; those that wait for a free
/// stream, as hyper's do, would wait for ever behind that many watches.
const STREAMS: u32 = 500;
/// How often a quiet HTTP/2 connection is asked whether its client is there, and how long that may take.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// What Go's servers answer, which is known to whoever searches for it.
const PLAIN_HTTP: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// Serves a connection until it ends, or is told to.
pub(crate) async fn serve(stream: TcpStream, tls: TlsAcceptor, authn: Arc<Authn>, slot: Slot) {
    let longest = if slot.refused { REFUSAL } else { Duration::MAX };
    let conversation = timeout(longest, async {
        let shaken = tokio::select! {
            () = slot.activity.ordered(Order::Leave) => return,
            shaken = timeout(HEADERS, shake_hands(stream, &tls)) => shaken,
        };
        if let Ok(Some(stream)) = shaken {
            converse(stream, &authn, &slot).await;
        }
    });
    tokio::select! {
        () = slot.activity.ordered(Order::Cut) => {}
        // A time-out ends a connection as well as its client does.
        _ = conversation => {}
    }
}

async fn shake_hands(mut stream: TcpStream, tls: &TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    // A TLS handshake begins with 22, all methods of HTTP with a capital letter.
    let mut first = [0];
    stream.peek(&mut first).await.ok()?;
    if first[0].is_ascii_uppercase() {
        refuse_plain_http(&mut stream).await.ok()?;
        return None;
    }
    // Makes small events arrive at once; they arrive without it as well.
    drop(stream.set_nodelay(true));
    tls.accept(stream).await.ok()
}

async fn refuse_plain_http(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    // Closing with something unread would reset the connection, and the answer would be lost.
    let mut unread = [0; 4096];
    for _ in 0..HEADER_BYTES / unread.len() {
        if stream.read(&mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}

async fn converse(stream: TlsStream<TcpStream>, authn: &Arc<Authn>, slot: &Slot) {
    let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let tasks = Tasks::default();
    let builder = builder(speaks_http2, Streams(tasks.clone()));
    let service = service_fn(|request: Request<Incoming>| {
        let (authn, activity, refused) = (authn.clone(), slot.activity.clone(), slot.refused);
        let leftovers = (!speaks_http2).then(|| tasks.clone());
        let request = request.map(|body| Upload::new(body, leftovers));
        async move { authn.answer(request, &activity, refused).await }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leaving = false;
    loop {
        tokio::select! {
            // A client that is gone, or talks nonsense, is no failure of ours.
            _ = connection.as_mut() => return,
            () = slot.activity.ordered(Order::Leave), if !leaving => {
                leaving = true;
                connection.as_mut().graceful_shutdown();
            }
            now = ticks.tick() => match due(&slot.activity, leaving, now) {
                Order::Cut => return,
                order @ (Order::Stay | Order::Leave) => slot.activity.order(order),
            }
        }
    }
}

/// What the clock asks of a connection.
fn due(activity: &Activity, leaving: bool, now: Instant) -> Order {
    let lasts =
        |since: Option<Instant>, limit| since.is_some_and(|since| now.saturating_duration_since(since) >= limit);
    let idle = activity.idle_since();
    if lasts(activity.stalled_since(), STALL) || (leaving && lasts(idle, TICK)) {
        Order::Cut
    } else if lasts(idle, IDLE) {
        Order::Leave
    } else {
        Order::Stay
    }
}

fn builder(speaks_http2: bool, streams: Streams) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(streams);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(PIECE)
        .max_header_list_size(u32::try_from(HEADER_BYTES).expect("a header is small"))
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    if speaks_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// Where the streams of an HTTP/2 connection are served.
#[derive(Clone)]
struct Streams(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(stream);
    }
}
