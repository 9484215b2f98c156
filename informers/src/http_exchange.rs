//! One question to the API server and its answer, as a source of things heard.

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

/// An exchange, or none.
pub(crate) enum HttpExchange {
    Idle,
    Asking(BoxFuture<'static, Result<Answer, Cause>>),
    Reading(Body),
}

/// The body of an answer that is no refusal.
pub(crate) struct Answer {
    pub(crate) body: Body,
    pub(crate) is_protobuf: bool,
}

pub(crate) enum ResponseEvent {
    Answered(Answer),
    Chunk(Bytes),
    Ended,
    Failed(Cause),
}

/// How much of the body of a refusal is read.
const REFUSAL: usize = 64 << 10;

impl HttpExchange {
    pub(crate) fn ask(client: Client, request: Request<Body>) -> Self {
        Self::Asking(answer(client, request).boxed())
    }

    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self, Self::Idle)
    }

    /// The next thing heard; for ever, if there is no exchange. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> ResponseEvent {
        match self {
            Self::Idle => std::future::pending().await,
            Self::Asking(answer) => match answer.await {
                Ok(answer) => ResponseEvent::Answered(answer),
                Err(cause) => ResponseEvent::Failed(cause),
            },
            Self::Reading(body) => match body.frame().await {
                None => ResponseEvent::Ended,
                // Trailers are nothing to us.
                Some(Ok(frame)) => ResponseEvent::Chunk(frame.into_data().unwrap_or_default()),
                Some(Err(error)) => ResponseEvent::Failed(Cause::Broken(error)),
            },
        }
    }
}

async fn answer(client: Client, request: Request<Body>) -> Result<Answer, Cause> {
    let response = client.send(request).await.map_err(Cause::Unreachable)?;
    if response.status().is_success() {
        let content_type = response.headers().get(CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
        let is_protobuf = content_type.starts_with(PROTOBUF.as_bytes());
        return Ok(Answer { body: response.into_body(), is_protobuf });
    }
    let (parts, body) = Response::into_parts(response);
    let retry_after = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    // The code alone says enough when the body is too long or breaks off.
    let body = Limited::new(body, REFUSAL).collect().await.map(Collected::to_bytes).unwrap_or_default();
    Err(Cause::Refused(status_of(parts.status, retry_after, &body)))
}
