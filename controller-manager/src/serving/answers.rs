//! One request: who sends it, whether they may, and its answer.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::header::{CACHE_CONTROL, HeaderValue};
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

/// How many answers beside those about health are made and sent at a time; further requests wait. A scrape is some
/// hundred kilobytes, and clients may read slowly.
const MOST_ANSWERS: usize = 32;

/// Answers requests.
pub(super) struct Answers {
    access: Access,
    router: Router,
    under_way: Arc<Semaphore>,
}

/// The client of a connection.
pub(super) struct Peer {
    /// Its certificate, and those that link it to an authority.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

/// The answer to a request.
pub(super) struct Answered {
    pub(super) response: Response<Body>,
    /// Whether the user is not authenticated.
    pub(super) is_anonymous: bool,
}

impl Answers {
    pub(super) fn new(access: Access, router: Router) -> Self {
        Self { access, router, under_way: Arc::new(Semaphore::new(MOST_ANSWERS)) }
    }

    /// Answers a request of `peer`, whose connection is at `place`.
    pub(super) async fn answer(&self, request: Request<Body>, peer: &Peer, place: &Arc<Place>) -> Answered {
        let in_place = place.request();
        let is_head = request.method() == Method::HEAD;
        let (parts, body) = request.into_parts();
        let (response, is_anonymous) = match percent_decoded(parts.uri.path()) {
            None => (text(StatusCode::BAD_REQUEST, "400 Bad Request: the path is malformed\n"), true),
            Some(path) => match self.access.decide(&parts, &path, &peer.certificates).await {
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
            },
        };
        let mut response = response.map(|body| HeldBody::wrap(if is_head { Body::empty() } else { body }, in_place));
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        Answered { response, is_anonymous }
    }

    async fn routed(&self, path: &str, parts: Parts, body: Body) -> Response<Body> {
        let is_health = ["/healthz", "/livez", "/readyz"].iter().any(|prefix| path.starts_with(prefix));
        // Health waits for nothing.
        let permit = if is_health { None } else { Arc::clone(&self.under_way).acquire_owned().await.ok() };
        let (method, uri) = (parts.method.clone(), parts.uri.clone());
        let answered = self.router.clone().oneshot(Request::from_parts(parts, body)).await;
        let response = answered.unwrap_or_else(|never| match never {});
        tracing::debug!(%method, %uri, status = response.status().as_u16(), "Answered a request");
        response.map(|body| HeldBody::wrap(body, permit))
    }
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

/// What no browser takes for HTML.
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
