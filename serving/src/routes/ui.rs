//! `/debug/ui`: the status page, its events, and the settings that it shows.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER};
use http::{Response, StatusCode};

use super::responses::{json, text, typed};
use crate::ui::{Feed, Page};

/// Tells proxies that buffer responses, such as nginx, not to hold events back.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The path of the stream of events.
pub(crate) const EVENTS: &str = "/debug/ui/events";

/// The routes of the page that `feed` feeds.
pub(crate) fn routes(feed: &Arc<Feed>) -> Router {
    let page = Arc::new(Page::new());
    let of_settings = Arc::clone(feed);
    let of_events = Arc::clone(feed);
    Router::new()
        .route("/debug/ui", any(async move || document(&page)))
        .route("/debug/ui/settings", any(async move || json(StatusCode::OK, &of_settings.settings())))
        .route(EVENTS, any(async move || events(&of_events)))
}

fn document(page: &Page) -> Response<Body> {
    let mut response = typed(StatusCode::OK, "text/html; charset=utf-8", page.html.clone());
    match HeaderValue::from_str(&page.policy) {
        Ok(policy) => response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy),
        // Without its policy the page is not served.
        Err(_) => return text(StatusCode::INTERNAL_SERVER_ERROR, "the policy of the page is no header\n"),
    };
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn events(feed: &Feed) -> Response<Body> {
    let Some(stream) = feed.stream() else {
        let mut busy = text(StatusCode::SERVICE_UNAVAILABLE, "too many status pages are open; close one\n");
        busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
        return busy;
    };
    let mut response = typed(StatusCode::OK, "text/event-stream", stream);
    response.headers_mut().insert(BUFFERING, HeaderValue::from_static("no"));
    response
}
