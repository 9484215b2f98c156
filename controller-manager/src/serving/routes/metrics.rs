//! `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::any;
use http::StatusCode;

use super::responses::typed;
use crate::serving::state::ServingState;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let metrics =
        async |State(state): State<Arc<ServingState>>| typed(StatusCode::OK, OPEN_METRICS, state.metrics.encode());
    Router::new().route("/metrics", any(metrics)).with_state(Arc::clone(state))
}
