//! The paths of the HTTPS port, a file for each.

mod configz;
mod debug;
mod health;
mod metrics;
mod negotiation;
mod responses;
mod verbosity;
mod version;
mod zpages;

use std::sync::Arc;

use axum::Router;

use super::state::ServingState;
pub(crate) use responses::{text, typed};

/// All routes.
pub(super) fn router(state: &Arc<ServingState>) -> Router {
    let of_files = [
        health::routes,
        metrics::routes,
        configz::routes,
        version::routes,
        zpages::routes,
        debug::routes,
        verbosity::routes,
    ];
    let joined = of_files.into_iter().fold(Router::new(), |router, routes| router.merge(routes(state)));
    joined.fallback(async || responses::not_found())
}
