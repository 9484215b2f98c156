//! `/healthz`, `/livez` and `/readyz`, each with a path for every check.
//!
//! # Upstream
//! It serves `/healthz` alone, without paths for checks.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::routing::any;
use http::{Response, StatusCode};

use super::responses::{not_found, text};
use crate::health::{Check, Query, api_server_check, caches_check, live, report};
use crate::state::ServingState;

type Checks = fn(&ServingState) -> Vec<Check>;

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let endpoints: [(&'static str, Checks); 3] =
        [("healthz", live_checks), ("livez", live_checks), ("readyz", ready_checks)];
    let routes = endpoints.into_iter().fold(Router::new(), |router, (endpoint, checks)| {
        let all = move |State(state): State<Arc<ServingState>>, RawQuery(query): RawQuery| async move {
            answer(&state, endpoint, &checks(&state), query.as_deref())
        };
        let one = move |State(state): State<Arc<ServingState>>, Path(name): Path<String>| async move {
            answer_one(&checks(&state), &name)
        };
        router.route(&format!("/{endpoint}"), any(all)).route(&format!("/{endpoint}/{{check}}"), any(one))
    });
    routes.with_state(Arc::clone(state))
}

/// Returns the checks of problems that only a restart cures: the kubelet restarts a process that is not alive.
fn live_checks(state: &ServingState) -> Vec<Check> {
    live(&state.manager, &state.live)
}

/// Returns the checks of liveness, and of problems that a restart does not cure.
fn ready_checks(state: &ServingState) -> Vec<Check> {
    let of_manager = [api_server_check(&state.manager), caches_check(&state.manager)];
    let of_readiness = of_manager.into_iter().chain(state.ready.iter().cloned());
    live_checks(state).into_iter().chain(of_readiness).collect()
}

fn answer(state: &ServingState, endpoint: &'static str, checks: &[Check], query: Option<&str>) -> Response<Body> {
    let query = Query::of(query);
    let report = report(endpoint, checks, &query);
    for check in checks.iter().filter(|check| !query.exclude.contains(check.name())) {
        let is_healthy = report.failed.iter().all(|(failed, _)| *failed != check.name());
        state.metrics.health_checked(check.name(), endpoint, is_healthy);
    }
    if report.failed.is_empty() {
        return text(StatusCode::OK, report.body);
    }
    for (check, reason) in &report.failed {
        tracing::info!(endpoint, check, reason, "Health check failed");
    }
    text(StatusCode::INTERNAL_SERVER_ERROR, report.body)
}

fn answer_one(checks: &[Check], name: &str) -> Response<Body> {
    match checks.iter().find(|check| check.name() == name).map(Check::run) {
        None => not_found(),
        Some(Ok(())) => text(StatusCode::OK, "ok"),
        Some(Err(reason)) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")),
    }
}
