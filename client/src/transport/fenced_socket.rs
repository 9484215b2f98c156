//! The socket of a connection that carries only writes of one fence.
//!
//! Between the check of a body and the system call that sends it lie the buffers of HTTP/2 and TLS. A process that is
//! stopped there, for longer than its lease, would send the write when it goes on. So the socket asks the fence again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use crate::fence::Fence;

/// A socket that a fence may guard. A socket without a fence passes everything.
///
/// # Guarantees
/// - While the fence sends no bytes of writes, none are sent: they wait until it is opened again.
/// - When the fence is over, the socket fails, even if nothing is sent or received, and stays unusable. Its owner then
///   drops it.
pub(crate) struct FencedSocket<S> {
    socket: S,
    gate: Option<Gate>,
}

struct Gate {
    fence: Fence,
    /// Ends when the fence is over.
    over: Wait,
    /// Ends when bytes may be sent; present while they wait.
    passable: Option<Wait>,
    is_over: bool,
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The error of a connection that was reset with its fence.
#[derive(Debug, thiserror::Error)]
#[error("the connection for writes was reset, because another manager may act in place of this one")]
struct Reset;

impl<S> FencedSocket<S> {
    pub(crate) fn new(socket: S, fence: Option<&Fence>) -> Self {
        Self { socket, gate: fence.map(Gate::new) }
    }

    fn poll_sendable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.gate.as_mut().map_or(Poll::Ready(Ok(())), |gate| gate.poll_sendable(cx))
    }
}

impl Gate {
    fn new(fence: &Fence) -> Self {
        Self { fence: fence.clone(), over: Box::pin(fence.clone().over()), passable: None, is_over: false }
    }

    /// Fails once the fence is over, and notifies `cx` then.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.is_over = self.is_over || self.fence.is_over() || self.over.as_mut().poll(cx).is_ready();
        if self.is_over { Err(io::Error::new(io::ErrorKind::ConnectionAborted, Reset)) } else { Ok(()) }
    }

    fn poll_sendable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.poll_over(cx)?;
            if self.fence.passes() {
                self.passable = None;
                return Poll::Ready(Ok(()));
            }
            let passable = self.passable.get_or_insert_with(|| Box::pin(self.fence.clone().passable()));
            if passable.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.passable = None;
        }
    }
}

impl<S: Read + Unpin> Read for FencedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if let Some(gate) = &mut self.gate {
            gate.poll_over(cx)?;
        }
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl<S: Write + Unpin> Write for FencedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.poll_sendable(cx))?;
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        std::task::ready!(self.poll_sendable(cx))?;
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }
}

impl<S: Connection> Connection for FencedSocket<S> {
    fn connected(&self) -> Connected {
        self.socket.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;
    use std::time::Duration;

    use http::{Method, Request, Uri};
    use hyper_util::rt::TokioIo;
    use kube::client::Body;
    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::Notify;
    use tokio::time::Instant;
    use tower::BoxError;

    use super::super::http2_connection::Http2Connection;
    use super::*;

    /// A connection on which the process can be stopped right before it sends.
    struct Stoppable {
        socket: TokioIo<DuplexStream>,
        stop: Arc<Stop>,
    }

    #[derive(Default)]
    struct Stop {
        state: Mutex<(bool, Option<Waker>)>,
        reached: Notify,
    }

    impl Stop {
        fn arm(&self) {
            self.state.lock().0 = true;
        }

        fn go_on(&self) {
            let mut state = self.state.lock();
            state.0 = false;
            state.1.take().expect("it must have been stopped").wake();
        }
    }

    impl Write for Stoppable {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let mut state = self.stop.state.lock();
            if state.0 {
                state.1 = Some(cx.waker().clone());
                self.stop.reached.notify_one();
                return Poll::Pending;
            }
            drop(state);
            Pin::new(&mut self.socket).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.socket).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.socket).poll_shutdown(cx)
        }
    }

    impl Read for Stoppable {
        fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.socket).poll_read(cx, into)
        }
    }

    impl Connection for Stoppable {
        fn connected(&self) -> Connected {
            Connected::new()
        }
    }

    fn write(fence: &Fence, body: &'static str) -> Request<Body> {
        let mut request = Request::new(Body::from(body.as_bytes().to_vec()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("http://server/");
        fence.mark(&mut request);
        request
    }

    /// Reads from `server` until `text` has arrived, or the connection has ended; returns `true` if it has arrived.
    async fn arrives(server: &mut DuplexStream, text: &str) -> bool {
        let mut received = Vec::new();
        loop {
            if String::from_utf8_lossy(&received).contains(text) {
                return true;
            }
            match server.read_buf(&mut received).await {
                Ok(0) | Err(_) => return false,
                Ok(_) => {}
            }
        }
    }

    #[tokio::test]
    async fn a_process_that_is_stopped_before_it_sends_a_write_does_not_send_it_once_the_fence_is_closed() {
        for is_guarded in [false, true] {
            let (fence, stop) = (Fence::default(), Arc::new(Stop::default()));
            fence.open_until(Instant::now() + Duration::from_hours(1));
            let (near, mut server) = tokio::io::duplex(1 << 16);
            let guard = is_guarded.then(|| fence.clone());
            let socket = Stoppable { socket: TokioIo::new(near), stop: Arc::clone(&stop) };
            let socket = Arc::new(Mutex::new(Some(FencedSocket::new(socket, guard.as_ref()))));
            let connection = Http2Connection::new(tower::service_fn(move |_: Uri| {
                let socket = socket.lock().take().ok_or_else(|| BoxError::from("there is one connection"));
                std::future::ready(socket)
            }));
            let (answered, arrived) = tokio::join!(connection.send(write(&fence, "first")), async {
                let arrived = arrives(&mut server, "first").await;
                server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
                arrived
            });
            assert!(answered.is_ok() && arrived);

            stop.arm();
            let (failed, arrived) = tokio::join!(connection.send(write(&fence, "second")), async {
                stop.reached.notified().await;
                fence.close();
                stop.go_on();
                let arrived = arrives(&mut server, "second").await;
                drop(server);
                arrived
            });
            assert!(failed.is_err());
            assert_eq!(arrived, !is_guarded);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_wait_in_the_reserved_time_and_go_on_with_the_next_renewal() {
        let (fence, begun) = (Fence::default(), Instant::now());
        fence.reserve(Duration::from_secs(4));
        fence.open_until(begun + Duration::from_secs(14));
        let (near, mut server) = tokio::io::duplex(64);
        let mut socket = TokioIo::new(FencedSocket::new(TokioIo::new(near), Some(&fence)));
        tokio::time::advance(Duration::from_secs(10)).await;
        {
            let mut sending = std::pin::pin!(socket.write_all(b"late"));
            assert!(futures::poll!(&mut sending).is_pending());
            fence.open_until(begun + Duration::from_secs(24));
            sending.await.unwrap();
        }
        let mut received = [0; 4];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_idle_fails_when_the_fence_is_over_and_stays_unusable() {
        let (fence, begun) = (Fence::default(), Instant::now());
        fence.open_until(begun + Duration::from_secs(10));
        let (near, _server) = tokio::io::duplex(64);
        let mut socket = TokioIo::new(FencedSocket::new(TokioIo::new(near), Some(&fence)));
        let failed = socket.read_u8().await.unwrap_err();
        assert_eq!((failed.kind(), begun.elapsed()), (io::ErrorKind::ConnectionAborted, Duration::from_secs(10)));
        fence.open();
        socket.write_all(b"late").await.unwrap_err();
        socket.read_u8().await.unwrap_err();
    }
}
