//! One request: its user, its authorization, and its response.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use super::access::{Access, Decision, User};
use super::connection_limit::Place;
use super::held_body::HeldBody;
use super::percent::percent_decoded;
use super::routes::{text, typed};

/// Largest number of responses, except about health, that are made and sent at a time. Further requests wait. A scrape
/// is some hundred kilobytes, and clients may read slowly.
const MOST_ANSWERS: usize = 32;

/// Largest number of requests that wait for a review or a response at a time. Further requests are refused. Each holds
/// its headers.
///
/// Probes do not count: they are served at once.
const MOST_REQUESTS: usize = 1024;

/// Authorizes requests and routes them.
pub(super) struct Answers {
    access: Access,
    router: Router,
    requests: Semaphore,
    under_way: Arc<Semaphore>,
}

/// The client of a connection.
pub(super) struct Peer {
    /// Its certificate, and the certificates that link it to a CA.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// The response to a request.
pub(super) struct Answered {
    pub(super) response: Response<Body>,
    /// Whether the user is not authenticated.
    pub(super) is_anonymous: bool,
}

impl Answers {
    pub(super) fn new(access: Access, router: Router) -> Self {
        let under_way = Arc::new(Semaphore::new(MOST_ANSWERS));
        Self { access, router, requests: Semaphore::new(MOST_REQUESTS), under_way }
    }

    /// Answers a request of `peer`, whose connection is at `place`.
    pub(super) async fn answer(&self, request: Request<Body>, peer: &Peer, place: &Arc<Place>) -> Answered {
        let in_place = place.request();
        let is_head = request.method() == Method::HEAD;
        let (parts, body) = request.into_parts();
        let (response, is_anonymous) = self.decided(parts, body, peer, place).await;
        let mut response = response.map(|body| HeldBody::wrap(if is_head { Body::empty() } else { body }, in_place));
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        Answered { response, is_anonymous }
    }

    /// Returns the response, and `true` if the user is not authenticated.
    async fn decided(&self, parts: Parts, body: Body, peer: &Peer, place: &Arc<Place>) -> (Response<Body>, bool) {
        let Some(path) = percent_decoded(parts.uri.path()) else {
            return (text(StatusCode::BAD_REQUEST, "400 Bad Request: the path is malformed\n"), true);
        };
        let has_credentials = parts.headers.contains_key(AUTHORIZATION) || !peer.certificates.is_empty();
        let _permit = match self.requests.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) if is_health(&path) && !has_credentials => None,
            Err(_) => {
                let busy = "503 Service Unavailable: too many requests at a time; try again later\n";
                return (text(StatusCode::SERVICE_UNAVAILABLE, busy), true);
            }
        };
        match self.access.decide(&parts, &path, &peer.certificates).await {
            Decision::Allowed(user) => {
                if !user.is_anonymous() {
                    place.authenticated();
                }
                (self.routed(&path, parts, body).await, user.is_anonymous())
            }
            Decision::Unauthorized => (status(StatusCode::UNAUTHORIZED, &unauthorized()), true),
            Decision::Forbidden { user, reason } => {
                let body = forbidden(&user, &parts, &path, &reason);
                (status(StatusCode::FORBIDDEN, &body), user.is_anonymous())
            }
            Decision::Failed(error) => {
                let message = sanitized(&format!("Internal Server Error: {:?}: {error}", parts.uri.to_string()));
                (text(StatusCode::INTERNAL_SERVER_ERROR, message + "\n"), false)
            }
        }
    }

    async fn routed(&self, path: &str, parts: Parts, body: Body) -> Response<Body> {
        // Health waits for nothing.
        let permit = if is_health(path) { None } else { Arc::clone(&self.under_way).acquire_owned().await.ok() };
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        let answered = self.router.clone().oneshot(Request::from_parts(parts, body)).await;
        let response = answered.unwrap_or_else(|never| match never {});
        tracing::debug!(%method, %uri, status = response.status().as_u16(), "Answered a request");
        response.map(|body| HeldBody::wrap(body, permit))
    }
}

fn is_health(path: &str) -> bool {
    ["/healthz", "/livez", "/readyz"].iter().any(|prefix| path.starts_with(prefix))
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
    let mut message = sanitized(&format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name));
    if !reason.is_empty() {
        message = format!("{message}: {reason}");
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
}
