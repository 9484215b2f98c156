//! `/version`: the version of Kubernetes that this program behaves as, in the form of the API server's, and its own.
//!
//! # Upstream
//! kube-controller-manager serves no such path.

use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use http::StatusCode;
use kcm_config::KUBERNETES_VERSION;
use serde_json::{Value, json};

use super::responses::json;
use crate::state::ServingState;

pub(super) fn routes(_state: &Arc<ServingState>) -> Router {
    Router::new().route("/version", any(async || json(StatusCode::OK, &version())))
}

fn version() -> Value {
    let mut parts = KUBERNETES_VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("v{KUBERNETES_VERSION}"),
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        "kcm": env!("CARGO_PKG_VERSION"),
    })
}
