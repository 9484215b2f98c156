//! `/configz`: the settings, as a configuration file in JSON.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::any;
use http::StatusCode;
use serde_json::{Value, json};

use super::responses::json;
use crate::state::ServingState;

/// The name under which the settings stand.
///
/// # Upstream
/// `ConfigzName` in `cmd/kube-controller-manager/app`.
const NAME: &str = "kubecontrollermanager.config.k8s.io";

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let configz = async |State(state): State<Arc<ServingState>>| {
        let settings: Value = serde_json::from_str(&state.settings.render_json()).unwrap_or_default();
        json(StatusCode::OK, &json!({ NAME: settings }))
    };
    Router::new().route("/configz", any(configz)).with_state(Arc::clone(state))
}
