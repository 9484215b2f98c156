//! Authenticates requests, and bounds how long they take.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::TakeUntil;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use http_body_util::{BodyStream, Either, StreamBody};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::ServiceExt as _;

use crate::token::{Credentials, Token};
use crate::upload::Upload;
use kcm_sandbox_apiserver::{ConnectionLost, ResponseBody, SandboxService, Status, status_response};

/// Time limit of a request up to its response. The response itself has no limit.
///
/// # Upstream
/// `--request-timeout`
const REQUEST: Duration = Duration::from_mins(1);

/// The paths that need no token.
///
/// # Upstream
/// `system:public-info-viewer`
const OPEN: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The body of a response. The body of a watch ends when the listener stops.
type Answer = Either<ResponseBody, StreamBody<TakeUntil<BodyStream<ResponseBody>, WaitForCancellationFutureOwned>>>;

/// The API behind its token.
pub(crate) struct Authn {
    pub(crate) service: SandboxService,
    pub(crate) token: Token,
}

impl Authn {
    /// Serves a request. A watch ends when `stop` is cancelled.
    pub(crate) async fn answer(
        &self,
        request: Request<Upload>,
        stop: CancellationToken,
    ) -> Result<Response<Answer>, ConnectionLost> {
        let (version, has_body) = (request.version(), !request.body().is_end_stream());
        let mut response =
            if self.admits(&request) { self.pass(request).await? } else { status_response(&Status::unauthorized()) };
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        // The rest of the body is discarded, and no further request can follow it.
        if has_body && version < Version::HTTP_2 && leaves_bodies(response.status()) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| {
            // Only the bodies of watches do not know their length.
            if body.size_hint().exact().is_some() {
                return Either::Left(body);
            }
            Either::Right(StreamBody::new(BodyStream::new(body).take_until(stop.cancelled_owned())))
        }))
    }

    fn admits(&self, request: &Request<Upload>) -> bool {
        match self.token.judge(request.headers()) {
            Credentials::Right => true,
            Credentials::Wrong => false,
            Credentials::None => request.method() == Method::GET && OPEN.contains(&request.uri().path()),
        }
    }

    async fn pass(&self, mut request: Request<Upload>) -> Result<Response<ResponseBody>, ConnectionLost> {
        // The sandbox records the headers of requests, which must not contain the token.
        request.headers_mut().remove(header::AUTHORIZATION);
        let answered = tokio::time::timeout(REQUEST, self.service.clone().oneshot(request)).await;
        answered.unwrap_or_else(|_| Ok(status_response(&Status::timeout())))
    }
}

/// Returns `true` if the response may be sent before the body of the request has been read.
fn leaves_bodies(status: StatusCode) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::PAYLOAD_TOO_LARGE, StatusCode::GATEWAY_TIMEOUT].contains(&status)
}
