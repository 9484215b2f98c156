//! `/metrics`, and `/metrics/slis` with the results of the health checks, in the format that the client accepts.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::any;
use http::header::ACCEPT;
use http::{HeaderMap, Response, StatusCode};
use kcm_framework::{Format, Metrics};

use super::responses::typed;
use crate::state::ServingState;

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let metrics =
        async |State(state): State<Arc<ServingState>>, headers: HeaderMap| exposed(&state, &headers, Metrics::expose);
    let slis = async |State(state): State<Arc<ServingState>>, headers: HeaderMap| {
        exposed(&state, &headers, Metrics::expose_slis)
    };
    Router::new().route("/metrics", any(metrics)).route("/metrics/slis", any(slis)).with_state(Arc::clone(state))
}

fn exposed(state: &ServingState, headers: &HeaderMap, expose: fn(&Metrics, Format) -> Vec<u8>) -> Response<Body> {
    let accepted: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok()).collect();
    let format = Format::accepted(&accepted.join(","));
    typed(StatusCode::OK, format.content_type(), expose(&state.metrics, format))
}
