//! One connection, from its first byte to its end.

use std::pin::{Pin, pin};
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
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::authn::Authn;
use crate::upload::{Tasks, Upload};

/// Time limit of the TLS handshake, and on HTTP/1.1 of each header, including the time before it.
///
/// # Upstream
/// `ReadHeaderTimeout` in `apiserver/pkg/server/secure_serving.go`
const HEADERS: Duration = Duration::from_secs(32);
/// Time limit of silence on an HTTP/2 connection, without responses to pings.
///
/// # Upstream
/// `IdleTimeout` in the same place
const SILENCE: Duration = Duration::from_secs(90);
/// Time for which a client may accept no bytes of its responses.
const STALL: Duration = Duration::from_mins(1);

/// Largest size of a header, all lines together.
const HEADER_BYTES: usize = 64 * 1024;
/// Number of bytes that an HTTP/2 stream buffers for a client that does not read its responses.
const UNSENT: usize = 32 * 1024;
/// Number of watches on one HTTP/2 connection. Upstream allows 100, and Go's clients know this limit. Clients that wait
/// for a free stream, such as hyper's, would wait for ever behind that many watches.
const STREAMS: u32 = 500;
/// Interval of pings on a quiet HTTP/2 connection, and the time limit of their responses.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));

/// The response of Go's servers to plain HTTP, which search engines find.
const PLAIN_HTTP: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// A socket with deadlines for reads and writes, which hyper does not have.
type Socket = Pin<Box<TimeoutStream<TcpStream>>>;

/// Serves a connection until it ends, or until `stop` is cancelled and its requests have responses.
pub(crate) async fn serve(stream: TcpStream, tls: TlsAcceptor, authn: Arc<Authn>, stop: CancellationToken) {
    let accepted = stop.run_until_cancelled(timeout(HEADERS, accept_tls(stream, &tls))).await;
    let Some(Ok(Some(mut stream))) = accepted else { return };
    let (socket, session) = stream.get_mut();
    let speaks_http2 = session.alpn_protocol() == Some(b"h2");
    if speaks_http2 {
        // On HTTP/1.1 hyper's deadline for headers ends silent connections, but not the connections of watches.
        socket.as_mut().set_read_timeout_pinned(Some(SILENCE));
    }
    let tasks = Tasks::default();
    let builder = builder(speaks_http2, Streams(tasks.clone()));
    let service = service_fn(|request: Request<Incoming>| {
        let (authn, stop) = (authn.clone(), stop.clone());
        let leftovers = (!speaks_http2).then(|| tasks.clone());
        let request = request.map(|body| Upload::new(body, leftovers));
        async move { authn.answer(request, stop).await }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A client that closes the connection, or sends no HTTP, is no failure of the listener.
    if stop.run_until_cancelled(connection.as_mut()).await.is_none() {
        connection.as_mut().graceful_shutdown();
        drop(connection.await);
    }
}

async fn accept_tls(mut stream: TcpStream, tls: &TlsAcceptor) -> Option<TlsStream<Socket>> {
    // A TLS handshake begins with 22, all methods of HTTP with a capital letter.
    let mut first = [0];
    stream.peek(&mut first).await.ok()?;
    if first[0].is_ascii_uppercase() {
        refuse_plain_http(&mut stream).await.ok()?;
        return None;
    }
    // Makes small events arrive at once; they arrive without it as well.
    drop(stream.set_nodelay(true));
    let mut socket = TimeoutStream::new(stream);
    socket.set_write_timeout(Some(STALL));
    tls.accept(Box::pin(socket)).await.ok()
}

async fn refuse_plain_http(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    // Closing the connection with unread bytes would reset it, and the response would be lost.
    let mut unread = [0; 4096];
    for _ in 0..HEADER_BYTES / unread.len() {
        if stream.read(&mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}

fn builder(speaks_http2: bool, streams: Streams) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(streams);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(UNSENT)
        .max_header_list_size(u32::try_from(HEADER_BYTES).expect("a header is small"))
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    if speaks_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// Runs the streams of an HTTP/2 connection as tasks that end with it.
#[derive(Clone)]
struct Streams(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(stream);
    }
}
