//! The gate between a process and the world: requests wait in it until the conductor lets them through.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kcm_framework::client::RequestOrigin;
use kcm_sandbox_apiserver::ConnectionLost;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

pub(crate) type GateBody = UnsyncBoxBody<Bytes, ConnectionLost>;
pub(crate) type Reply = Result<Response<GateBody>, ConnectionLost>;
pub(crate) type Lines = mpsc::UnboundedSender<Result<Frame<Bytes>, ConnectionLost>>;

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) request: Request<Bytes>,
    pub(crate) origin: Option<RequestOrigin>,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// The requests of one process, in the order in which it sent them.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<VecDeque<Waiting>>>);

impl Gate {
    /// Returns a client whose requests wait in the gate. Must be called in the runtime of the process.
    pub(crate) fn client(&self) -> kube::Client {
        let gate = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let gate = gate.clone();
            async move {
                let (parts, body) = request.into_parts();
                let origin = parts.extensions.get::<RequestOrigin>().cloned();
                let body = body.collect().await.map_err(|_| ConnectionLost)?.to_bytes();
                let (reply, answered) = oneshot::channel();
                gate.0.lock().push_back(Waiting { request: Request::from_parts(parts, body), origin, reply });
                answered.await.unwrap_or(Err(ConnectionLost))
            }
        });
        kube::Client::new(service, "default")
    }

    /// The actors of the requests whose clients still wait, the oldest first.
    pub(crate) fn actors(&self) -> Vec<String> {
        let mut requests = self.0.lock();
        requests.retain(|waiting| !waiting.reply.is_closed());
        requests.iter().map(Waiting::actor).collect()
    }

    /// Takes a request, by its place among [`actors`](Self::actors).
    pub(crate) fn take_at(&self, index: usize) -> Option<Waiting> {
        self.0.lock().remove(index)
    }

    /// Takes the oldest request whose client still waits.
    pub(crate) fn take(&self) -> Option<Waiting> {
        let mut requests = self.0.lock();
        loop {
            let waiting = requests.pop_front()?;
            if !waiting.reply.is_closed() {
                return Some(waiting);
            }
        }
    }
}

impl Waiting {
    /// The loop and key that sent the request.
    pub(crate) fn actor(&self) -> String {
        format!("{} {}", self.name(), self.key())
    }

    /// Returns `true` if the request is a write, other than of an event.
    pub(crate) fn writes(&self) -> bool {
        *self.request.method() != Method::GET && !self.request.uri().path().contains("/events")
    }

    pub(crate) fn name(&self) -> String {
        let agent = self.request.headers().get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        let identity = || agent.and_then(|agent| agent.rsplit('/').next()).unwrap_or_default().to_owned();
        self.origin.as_ref().map_or_else(identity, |origin| origin.loop_name.to_owned())
    }

    pub(crate) fn key(&self) -> String {
        self.origin.as_ref().and_then(|origin| origin.key.as_deref()).unwrap_or_default().to_owned()
    }
}

/// Returns a response with its whole body.
pub(crate) fn whole(response: Response<Bytes>) -> Response<GateBody> {
    response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())
}

/// Returns the response that opens a watch, and the sender of its lines.
pub(crate) fn stream() -> (Response<GateBody>, Lines) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let lines =
        futures::stream::unfold(
            receiver,
            |mut receiver| async move { receiver.recv().await.map(|line| (line, receiver)) },
        );
    let mut response = Response::new(StreamBody::new(lines).boxed_unsync());
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    (response, sender)
}
