//! One request: its user, its authorization, and its response.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::access::{Access, Decision, User};
use super::connection_limit::RequestInPlace;
use super::cut::{MOST_REASON, MOST_REPEATED, cut};
use super::held_body::HeldBodies;
use super::peer::Peer;
use super::percent::percent_decoded;
use super::response_limits::{ResponseLimits, ResponsePermit};
use super::revocation::AllowedRequest;
use super::routes::{EVENTS, text, typed};

/// Largest number of requests that wait for a review or a response at a time. Further requests are refused. Each holds
/// its headers.
///
/// Probes do not count: they are served at once.
const MOST_REQUESTS: usize = 1024;

/// Bytes of a body that is sent without a permit, such as `ok`: fewer than its response takes beside it.
const TINY: u64 = 64;

/// Authorizes requests and routes them.
pub(super) struct Answers {
    access: Arc<Access>,
    router: Router,
    requests: Semaphore,
    limits: ResponseLimits,
    bodies: Arc<HeldBodies>,
}

/// The response to a request.
pub(super) struct Answered {
    pub(super) response: Response<Body>,
    /// Whether the user is not authenticated.
    pub(super) is_anonymous: bool,
}

/// A response that has no permit yet unless it is a large one.
struct Made {
    response: Response<Body>,
    permit: Option<ResponsePermit>,
    is_anonymous: bool,
}

impl Made {
    const fn small(response: Response<Body>, is_anonymous: bool) -> Self {
        Self { response, permit: None, is_anonymous }
    }
}

impl Answers {
    pub(super) fn new(access: Arc<Access>, router: Router) -> Self {
        let (limits, bodies) = (ResponseLimits::new(), Arc::default());
        Self { access, router, requests: Semaphore::new(MOST_REQUESTS), limits, bodies }
    }

    /// Drops the bodies that clients have stopped reading.
    pub(super) fn drop_stalled(&self, now: Instant) {
        self.bodies.drop_stalled(now);
    }

    /// Answers a request of `peer`.
    pub(super) async fn answer(
        &self,
        request: Request<Body>,
        peer: &Arc<Peer>,
        mut in_place: RequestInPlace,
    ) -> Answered {
        let is_head = request.method() == Method::HEAD;
        let (parts, body) = request.into_parts();
        let Made { response, permit, is_anonymous } = self.made(parts, body, peer, &mut in_place).await;
        let response = if is_head { response.map(|_| Body::empty()) } else { response };
        self.held(Made { response, permit, is_anonymous }, in_place)
    }

    /// Answers a request whose header is too large.
    pub(super) fn refuse_header(&self, in_place: RequestInPlace) -> Answered {
        let reason = "431 Request Header Fields Too Large: no user of the connection is authenticated yet\n";
        self.held(Made::small(text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason), true), in_place)
    }

    /// Gives a response its permit, and its place on the connection until it has been sent.
    fn held(&self, made: Made, in_place: RequestInPlace) -> Answered {
        let Made { response, permit, is_anonymous } = made;
        let mut response = response.map(|body| {
            if permit.is_some() || body.size_hint().exact().is_some_and(|bytes| bytes <= TINY) {
                return self.bodies.hold(body, (permit, in_place));
            }
            match self.limits.small(is_anonymous) {
                Some(small) => self.bodies.hold(body, (small, in_place)),
                // The status code arrives even if the client reads nothing.
                None => Body::empty(),
            }
        });
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        Answered { response, is_anonymous }
    }

    async fn made(&self, parts: Parts, body: Body, peer: &Arc<Peer>, in_place: &mut RequestInPlace) -> Made {
        let Some(path) = percent_decoded(parts.uri.path()) else {
            return Made::small(text(StatusCode::BAD_REQUEST, "400 Bad Request: the path is malformed\n"), true);
        };
        let is_health = is_health(&path);
        let has_credentials = parts.headers.contains_key(AUTHORIZATION) || !peer.certificates.is_empty();
        let _waits = match self.requests.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) if is_health && !has_credentials => None,
            Err(_) => return Made::small(busy("requests"), true),
        };
        let user = match self.access.decide(&parts, &path, &peer.certificates).await {
            Decision::Allowed(user) => user,
            Decision::Unauthorized => return Made::small(status(StatusCode::UNAUTHORIZED, &unauthorized()), true),
            Decision::Forbidden { user, reason } => {
                let body = forbidden(&user, &parts, &path, &reason);
                return Made::small(status(StatusCode::FORBIDDEN, &body), user.is_anonymous());
            }
            Decision::Failed { user, error } => {
                let body = failed(&parts, &error);
                return Made::small(text(StatusCode::INTERNAL_SERVER_ERROR, body), user.is_anonymous());
            }
        };
        drop(path);
        let is_anonymous = user.is_anonymous();
        in_place.serve();
        if !is_anonymous {
            in_place.authenticated();
        }
        if is_health {
            // Health waits for nothing.
            return Made::small(self.routed(parts, body).await, is_anonymous);
        }
        let Some(permit) = self.limits.wait(&user.name).await else {
            return Made::small(busy("responses"), is_anonymous);
        };
        let endless = (parts.uri.path() == EVENTS).then(|| AllowedRequest {
            access: Arc::clone(&self.access),
            parts: parts.clone(),
            peer: Arc::clone(peer),
        });
        let mut response = self.routed(parts, body).await;
        if let Some(request) = endless {
            response = response.map(|body| request.limit(body));
        }
        Made { response, permit: Some(permit), is_anonymous }
    }

    async fn routed(&self, parts: Parts, body: Body) -> Response<Body> {
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        let answered = self.router.clone().oneshot(Request::from_parts(parts, body)).await;
        let response = answered.unwrap_or_else(|never| match never {});
        tracing::debug!(%method, %uri, status = response.status().as_u16(), "Answered a request");
        response
    }
}

/// Returns `true` for the paths of probes. The path of a single check waits as others do.
fn is_health(path: &str) -> bool {
    ["/healthz", "/livez", "/readyz"].contains(&path)
}

fn busy(of: &str) -> Response<Body> {
    let busy = format!("503 Service Unavailable: too many {of} at a time; try again later\n");
    text(StatusCode::SERVICE_UNAVAILABLE, busy)
}

fn failed(parts: &Parts, error: &str) -> String {
    let uri = parts.uri.to_string();
    let (uri, error) = (cut(&uri, MOST_REPEATED), cut(error, MOST_REASON));
    sanitized(&format!("Internal Server Error: {uri:?}: {error}")) + "\n"
}

fn status(code: StatusCode, body: &Value) -> Response<Body> {
    typed(code, "application/json", format!("{body}\n"))
}

fn unauthorized() -> Value {
    failure("Unauthorized", StatusCode::UNAUTHORIZED, "Unauthorized")
}

/// # Upstream
/// `ForbiddenStatusError` in `apiserver/pkg/endpoints/handlers/responsewriters`.
fn forbidden(user: &User, parts: &Parts, path: &str, reason: &str) -> Value {
    let verb = parts.method.as_str().to_ascii_lowercase();
    let [name, verb, path] = [&user.name, &verb, path].map(|text| cut(text, MOST_REPEATED));
    let mut message = sanitized(&format!("forbidden: User {name:?} cannot {verb} path {path:?}"));
    if !reason.is_empty() {
        message = format!("{message}: {}", cut(reason, MOST_REASON));
    }
    let mut status = failure("Forbidden", StatusCode::FORBIDDEN, &message);
    status["details"] = json!({});
    status
}

fn failure(reason: &str, code: StatusCode, message: &str) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    })
}

/// Escapes text so that no browser takes it for HTML.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_request_is_refused_as_upstream_refuses_it() {
        let (parts, ()) = Request::builder().uri("/metrics").body(()).expect("it is a request").into_parts();
        let status = forbidden(&User::anonymous(), &parts, "/met<rics", "");
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "forbidden: User \"system:anonymous\" cannot get path \"/met&lt;rics\"",
            "reason": "Forbidden", "details": {}, "code": 403,
        });
        assert_eq!(status, expected);
        let status = forbidden(&User::anonymous(), &parts, "/metrics", "no rule");
        assert_eq!(status["message"], "forbidden: User \"system:anonymous\" cannot get path \"/metrics\": no rule");
    }

    #[test]
    fn a_refusal_repeats_little_of_its_request() {
        let long = format!("/{}", "&".repeat(30_000));
        let (parts, ()) = Request::builder().uri(&long).body(()).expect("it is a request").into_parts();
        let user = User { name: long.clone(), ..User::anonymous() };
        let status = forbidden(&user, &parts, &long, &long).to_string();
        assert!(status.len() < 5000, "{}", status.len());
        assert!(failed(&parts, &long).len() < 8000);
    }

    #[test]
    fn only_the_paths_of_probes_wait_for_nothing() {
        for path in ["/healthz", "/livez", "/readyz"] {
            assert!(is_health(path));
            for end in ["/", "/ping", "z"] {
                assert!(!is_health(&format!("{path}{end}")));
            }
        }
    }
}
