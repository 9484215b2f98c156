//! One HTTP request to the API server and its response, as a source of [`ResponseEvent`]s.

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Collected, Limited};
use kube::Client;
use kube::client::Body;

use crate::failure::{Cause, status_of};
use crate::request::PROTOBUF;

/// An HTTP exchange, if one is open.
pub(crate) enum HttpExchange {
    Idle,
    Requesting(BoxFuture<'static, Result<ResponseBody, Cause>>),
    Reading(Body),
}

/// The body of a successful response.
pub(crate) struct ResponseBody {
    pub(crate) body: Body,
    pub(crate) is_protobuf: bool,
}

pub(crate) enum ResponseEvent {
    Started(ResponseBody),
    Chunk(Bytes),
    Ended,
    Failed(Cause),
}

/// How much of the body of an error response is read.
const ERROR_BODY_LIMIT: usize = 64 << 10;

impl HttpExchange {
    pub(crate) fn open(client: Client, request: Request<Body>) -> Self {
        Self::Requesting(send(client, request).boxed())
    }

    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self, Self::Idle)
    }

    /// The next event; waits for ever if no exchange is open. No event is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> ResponseEvent {
        match self {
            Self::Idle => std::future::pending().await,
            Self::Requesting(response) => match response.await {
                Ok(response) => ResponseEvent::Started(response),
                Err(cause) => ResponseEvent::Failed(cause),
            },
            Self::Reading(body) => match body.frame().await {
                None => ResponseEvent::Ended,
                // Trailers are not used.
                Some(Ok(frame)) => ResponseEvent::Chunk(frame.into_data().unwrap_or_default()),
                Some(Err(error)) => ResponseEvent::Failed(Cause::Broken(error)),
            },
        }
    }
}

pub(crate) async fn send(client: Client, request: Request<Body>) -> Result<ResponseBody, Cause> {
    let response = client.send(request).await.map_err(Cause::Unreachable)?;
    if response.status().is_success() {
        let content_type = response.headers().get(CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
        let is_protobuf = content_type.starts_with(PROTOBUF.as_bytes());
        return Ok(ResponseBody { body: response.into_body(), is_protobuf });
    }
    let (parts, body) = Response::into_parts(response);
    let retry_after = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    // The code suffices if the body is too long or breaks off.
    let body = Limited::new(body, ERROR_BODY_LIMIT).collect().await.map(Collected::to_bytes).unwrap_or_default();
    Err(Cause::Status(status_of(parts.status, retry_after, &body)))
}
