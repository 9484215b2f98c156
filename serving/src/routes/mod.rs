//! The paths of the HTTPS port, a file for each.

mod configz;
mod debug;
mod health;
mod metrics;
mod negotiation;
mod pprof;
mod responses;
mod ui;
mod verbosity;
mod version;
mod zpages;

use std::sync::Arc;

use axum::Router;

use super::state::ServingState;
use super::ui::Feed;
pub(crate) use responses::{text, typed};
pub(crate) use ui::EVENTS;

/// Returns all routes, with the routes of the status page if there is a feed for it.
pub(super) fn router(state: &Arc<ServingState>, feed: Option<&Arc<Feed>>) -> Router {
    let of_files = [
        health::routes,
        metrics::routes,
        configz::routes,
        version::routes,
        zpages::routes,
        debug::routes,
        pprof::routes,
        verbosity::routes,
    ];
    let joined = of_files.into_iter().fold(Router::new(), |router, routes| router.merge(routes(state)));
    let joined = feed.into_iter().fold(joined, |router, feed| router.merge(ui::routes(feed)));
    joined.fallback(async || responses::not_found())
}
