//! One connection, from its first byte to its end, with a deadline for everything that a client could draw out.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::connection_limit::{NotAdmitted, Place, RequestInPlace};
use super::peer::Peer;
use super::tls::Tls;

/// Longest time for the TLS handshake, and on HTTP/1.1 for each header, including the time before it.
///
/// # Upstream
/// `ReadHeaderTimeout` in `apiserver/pkg/server/secure_serving.go`; it leaves idle connections open for 90 s.
pub(super) const HEADERS: Duration = Duration::from_secs(32);

/// Longest time without any data on a connection of HTTP/2. Responses to pings count as data.
///
/// # Upstream
/// `IdleTimeout` in the same place.
const SILENCE: Duration = Duration::from_secs(90);

/// Longest time for which a client accepts no bytes of its responses.
const STALL: Duration = Duration::from_secs(30);

/// Longest time that a connection takes to close after it is asked to.
const CLOSING: Duration = Duration::from_secs(5);

/// The largest header, all lines together, of an authenticated user; also the read buffer of HTTP/1.1.
const HEADER_BYTES: u32 = 32 * 1024;

/// Bytes of responses that an HTTP/2 stream holds at most for a client that does not read them.
const UNSENT: usize = 32 * 1024;

/// Bytes of request bodies that a client may send ahead. No path reads more than a number from a body.
const WINDOW: u32 = 64 * 1024;

/// Pause before a quiet HTTP/2 connection is pinged, and longest time until the client's response.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// The response of Go's servers to plain HTTP.
const PLAIN_HTTP: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// A socket with deadlines for reads and writes, because hyper has no deadlines.
type Socket = Pin<Box<TimeoutStream<TcpStream>>>;

/// State that all connections share.
pub(super) struct Shared {
    pub(super) tls: Arc<Tls>,
    pub(super) answers: Answers,
    /// The streams of one HTTP/2 connection.
    pub(super) streams: u32,
    /// Cancelled when the port is closed.
    pub(super) stop: CancellationToken,
}

/// Serves a connection until it ends, loses its place, or `stop` is cancelled and its requests are served.
pub(super) async fn serve(stream: TcpStream, place: Place, shared: Arc<Shared>) {
    let displaced = place.displaced.clone();
    displaced.run_until_cancelled(Box::pin(serve_in_place(stream, Arc::new(place), &shared))).await;
}

async fn serve_in_place(stream: TcpStream, place: Arc<Place>, shared: &Arc<Shared>) {
    let accepting = Box::pin(accept_tls(stream, &shared.tls));
    let accepted = shared.stop.run_until_cancelled(timeout(HEADERS, accepting)).await;
    let Some(Ok(Some(mut stream))) = accepted else { return };
    let (socket, session) = stream.get_mut();
    let speaks_http2 = session.alpn_protocol() == Some(b"h2");
    if speaks_http2 {
        // On HTTP/1.1 hyper's deadline for headers ends silent connections.
        socket.as_mut().set_read_timeout_pinned(Some(SILENCE));
    }
    let certificates =
        session.peer_certificates().map(|chain| chain.iter().map(|it| it.clone().into_owned()).collect());
    let peer = Arc::new(Peer { certificates: certificates.unwrap_or_default() });
    let closing = CancellationToken::new();
    let service = service_fn(|request: Request<Incoming>| {
        let (peer, shared, closing) = (peer.clone(), shared.clone(), closing.clone());
        // Called as soon as the header has been read, so that requests that are not admitted never pile up.
        let admitted = admit(request, &place);
        // Boxed, so that an idle connection has no room for it.
        Box::pin(async move {
            let answered = match admitted? {
                (Some(request), place) => shared.answers.answer(request.map(Body::new), &peer, place).await,
                (None, place) => shared.answers.refuse_header(place),
            };
            // As upstream: HTTP/2 lets one client cause much work, so that only an authenticated client may use it.
            if speaks_http2 && answered.is_anonymous {
                closing.cancel();
            }
            Ok::<_, h2::Error>(answered.response)
        })
    });
    let builder = builder(speaks_http2, shared.streams, Streams::default());
    let mut connection = Box::pin(builder.serve_connection(TokioIo::new(stream), service));
    // A client that disconnects, or does not speak HTTP, is no failure of the port.
    tokio::select! {
        biased;
        _ended = connection.as_mut() => return,
        () = shared.stop.cancelled() => {}
        () = closing.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    drop(timeout(CLOSING, connection).await);
}

/// A request with its place on the connection. Without the request if its header is too large.
type Admitted = (Option<Request<Incoming>>, RequestInPlace);

/// Admits a request to its connection.
///
/// # Errors
/// The reset of the stream if the connection has too many requests. A client may repeat the request at once.
fn admit(request: Request<Incoming>, place: &Arc<Place>) -> Result<Admitted, h2::Error> {
    match place.admit(header_bytes(&request)) {
        Ok(in_place) => Ok((Some(request), in_place)),
        Err(NotAdmitted::HeaderTooLarge(in_place)) => Ok((None, in_place)),
        Err(NotAdmitted::TooManyRequests) => Err(h2::Reason::REFUSED_STREAM.into()),
    }
}

/// The size of a header as HTTP/2 counts it.
fn header_bytes(request: &Request<Incoming>) -> usize {
    let uri = request.uri();
    let uri =
        uri.path_and_query().map_or(0, |path| path.as_str().len()) + uri.authority().map_or(0, |it| it.as_str().len());
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32);
    uri + fields.sum::<usize>()
}

async fn accept_tls(mut stream: TcpStream, tls: &Tls) -> Option<TlsStream<Socket>> {
    // A TLS handshake begins with 22, all methods of HTTP with a capital letter.
    let mut first = [0];
    stream.peek(&mut first).await.ok()?;
    if first[0].is_ascii_uppercase() {
        refuse_plain_http(&mut stream).await.ok()?;
        return None;
    }
    // Answers arrive without it as well, only later.
    drop(stream.set_nodelay(true));
    let acceptor = TlsAcceptor::from(tls.config(stream.local_addr().ok().map(|address| address.ip())));
    let mut socket = TimeoutStream::new(stream);
    socket.set_write_timeout(Some(STALL));
    match acceptor.accept(Box::pin(socket)).await {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::trace!(%error, "TLS handshake error");
            None
        }
    }
}

async fn refuse_plain_http(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    // Closing with unread data would reset the connection, and the response would be lost.
    let mut unread = [0; 4096];
    for _ in 0..16 {
        if stream.read(&mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}

fn builder(speaks_http2: bool, streams: u32, tasks: Streams) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(tasks);
    let header_bytes = usize::try_from(HEADER_BYTES).unwrap_or(usize::MAX);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(header_bytes);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams)
        .max_send_buf_size(UNSENT)
        .max_header_list_size(HEADER_BYTES)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    if speaks_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// Runs the streams of an HTTP/2 connection as tasks that end with it.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(stream);
    }
}
