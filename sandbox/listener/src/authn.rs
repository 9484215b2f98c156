//! What stands between a request and the API: who may pass, and for how long.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use tower::ServiceExt as _;

use crate::activity::{Activity, Answer, Order};
use crate::token::{Credentials, Token};
use crate::upload::Upload;
use kcm_sandbox_apiserver::{ConnectionLost, ResponseBody, SandboxService, Status, status_response};

/// How long a request may take up to its answer; how long the answer takes is not limited.
///
/// # Upstream
/// `--request-timeout`
const REQUEST: Duration = Duration::from_mins(1);

/// What anybody may read.
///
/// # Upstream
/// `system:public-info-viewer`
const OPEN: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The way to the API.
pub(crate) struct Authn {
    pub(crate) service: SandboxService,
    pub(crate) token: Token,
}

impl Authn {
    /// Answers a request of a connection; of one that is too many, with the request to come back later.
    pub(crate) async fn answer(
        &self,
        request: Request<Upload>,
        activity: &Arc<Activity>,
        refused: bool,
    ) -> Result<Response<Answer>, ConnectionLost> {
        let exchange = activity.begin();
        let (version, has_body) = (request.version(), !request.body().is_end_stream());
        let response = if refused {
            activity.order(Order::Leave);
            status_response(&Status::too_many_requests(1))
        } else if self.admits(&request) {
            self.pass(request).await?
        } else {
            // Connections of HTTP/2 cost something; upstream grants strangers none that last.
            if version == Version::HTTP_2 {
                activity.order(Order::Leave);
            }
            status_response(&Status::unauthorized())
        };
        let mut response = response.map(|body| exchange.answer(body));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        // What is left of the body is thrown away; nothing more can be asked for behind it.
        if has_body && version < Version::HTTP_2 && leaves_bodies(response.status()) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }

    fn admits(&self, request: &Request<Upload>) -> bool {
        match self.token.judge(request.headers()) {
            Credentials::Right => true,
            Credentials::Wrong => false,
            Credentials::None => request.method() == Method::GET && OPEN.contains(&request.uri().path()),
        }
    }

    async fn pass(&self, mut request: Request<Upload>) -> Result<Response<ResponseBody>, ConnectionLost> {
        // The sandbox notes the headers of requests; the token is not for everybody who reads those notes.
        request.headers_mut().remove(header::AUTHORIZATION);
        let answered = tokio::time::timeout(REQUEST, self.service.clone().oneshot(request)).await;
        answered.unwrap_or_else(|_| Ok(status_response(&Status::timeout())))
    }
}

/// Whether an answer may be given before the body of the request has been read.
fn leaves_bodies(status: StatusCode) -> bool {
    let early = [
        StatusCode::UNAUTHORIZED,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    early.contains(&status)
}
