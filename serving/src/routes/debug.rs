//! `/debug/queues`, `/debug/caches` and `/debug/controllers`: the state of the manager, why each key was reconciled, and
//! the debug page of each controller.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::any;
use http::{Request, Response, StatusCode, Uri};
use kcm_framework::ManagerHandle;
use kcm_framework::api::ObjectKey;
use serde_json::Value;

use super::responses::{json, not_found};
use crate::debug;
use crate::state::ServingState;

/// Makes the JSON of a list.
type Show = fn(&ManagerHandle) -> Value;

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let root = async |State(state): State<Arc<ServingState>>, Path(name): Path<String>, request: Request<Body>| {
        page(&state, &name, &request)
    };
    let beneath = async |State(state): State<Arc<ServingState>>,
                         Path((name, _path)): Path<(String, String)>,
                         request: Request<Body>| { page(&state, &name, &request) };
    let of_cluster = async |State(state): State<Arc<ServingState>>,
                            Path((controller, name)): Path<(String, String)>| {
        key(&state, &controller, &ObjectKey::cluster_scoped(name))
    };
    let namespaced = async |State(state): State<Arc<ServingState>>,
                            Path((controller, namespace, name)): Path<(String, String, String)>| {
        key(&state, &controller, &ObjectKey::namespaced(namespace, name))
    };
    let lists: [(&str, Show); 3] = [
        ("/debug/queues", debug::queues),
        ("/debug/caches", debug::caches),
        ("/debug/controllers", debug::controllers),
    ];
    let router = lists.into_iter().fold(Router::new(), |router, (path, show)| {
        let answer =
            move |State(state): State<Arc<ServingState>>| async move { json(StatusCode::OK, &show(&state.manager)) };
        router.route(path, any(answer))
    });
    router
        .route("/debug/controllers/{name}/keys/{key}", any(of_cluster))
        .route("/debug/controllers/{name}/keys/{namespace}/{key}", any(namespaced))
        .route("/debug/controllers/{name}", any(root))
        .route("/debug/controllers/{name}/", any(root))
        .route("/debug/controllers/{name}/{*path}", any(beneath))
        .with_state(Arc::clone(state))
}

fn key(state: &ServingState, controller: &str, object: &ObjectKey) -> Response<Body> {
    debug::key(&state.manager, controller, object).map_or_else(not_found, |explained| json(StatusCode::OK, &explained))
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
