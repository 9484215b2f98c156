//! `PUT /debug/flags/v`: the verbosity of the logs, until they are set again.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::routing::any;
use http::{Method, Request, Response, StatusCode};

use super::responses::{text, typed};
use crate::state::ServingState;

/// The longest body that is read: a number.
const MOST_BYTES: usize = 64;

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    if !state.settings.get("profiling").unwrap_or(false) {
        return Router::new();
    }
    let index = async || text(StatusCode::OK, "flags: v\n");
    Router::new()
        .route("/debug/flags", any(index))
        .route("/debug/flags/", any(index))
        .route("/debug/flags/v", any(set))
        .with_state(Arc::clone(state))
}

/// # Upstream
/// `StringFlagPutHandler` in `apiserver/pkg/server/routes`: codes and messages are the same.
async fn set(State(state): State<Arc<ServingState>>, request: Request<Body>) -> Response<Body> {
    let plain = |code, message: String| typed(code, "text/plain", message + "\n");
    if request.method() != Method::PUT {
        return plain(StatusCode::NOT_ACCEPTABLE, "unsupported http method".to_owned());
    }
    let body = match to_bytes(request.into_body(), MOST_BYTES).await {
        Ok(body) => body,
        Err(error) => return plain(StatusCode::BAD_REQUEST, format!("error reading request body: {error}")),
    };
    let verbosity = std::str::from_utf8(&body).ok().and_then(|text| text.parse::<u16>().ok());
    match verbosity {
        Some(verbosity) => {
            (state.set_verbosity)(verbosity.into());
            tracing::info!(verbosity, "Set the verbosity of the logs");
            plain(StatusCode::OK, format!("successfully set klog.logging.verbosity to {verbosity}"))
        }
        None => plain(StatusCode::BAD_REQUEST, "the verbosity must be a whole number, such as 4".to_owned()),
    }
}
