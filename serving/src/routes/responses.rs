//! Responses as Go's servers write them.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};

/// A response in plain text, in the form of `http.Error`. The `body` of an error ends with a line feed.
pub(crate) fn text(status: StatusCode, body: impl Into<String>) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", body.into())
}

/// A response in JSON.
pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    typed(status, "application/json", body.to_string())
}

/// A response whose content type no browser guesses.
pub(crate) fn typed(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The response for a path that is not served.
pub(crate) fn not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}
