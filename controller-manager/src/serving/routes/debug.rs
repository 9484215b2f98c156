//! `/debug/controllers/NAME/`: the debug page of a controller.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::any;
use http::{Request, Response, Uri};

use super::responses::not_found;
use crate::serving::state::ServingState;

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let root = async |State(state): State<Arc<ServingState>>, Path(name): Path<String>, request: Request<Body>| {
        page(&state, &name, &request)
    };
    let beneath = async |State(state): State<Arc<ServingState>>,
                         Path((name, _path)): Path<(String, String)>,
                         request: Request<Body>| { page(&state, &name, &request) };
    Router::new()
        .route("/debug/controllers/{name}", any(root))
        .route("/debug/controllers/{name}/", any(root))
        .route("/debug/controllers/{name}/{*path}", any(beneath))
        .with_state(Arc::clone(state))
}

/// The page of a controller, which gets the path that follows its name.
fn page(state: &ServingState, name: &str, request: &Request<Body>) -> Response<Body> {
    let prefix = format!("/debug/controllers/{name}");
    let relative = request.uri().path_and_query().and_then(|path| path.as_str().strip_prefix(&prefix));
    let Some(relative) = relative.map(|path| if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
    else {
        return not_found();
    };
    let Ok(uri) = relative.parse::<Uri>() else { return not_found() };
    let mut asked = Request::new(());
    *asked.method_mut() = request.method().clone();
    *asked.uri_mut() = uri;
    *asked.headers_mut() = request.headers().clone();
    state.manager.debug(name, &asked).map_or_else(not_found, |response| response.map(Body::from))
}
