mod apply;
mod event_mapping;
mod plan;

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::Namespace;
use serde_json::json;

fn namespace(phase: &str) -> Arc<Namespace> {
    let object = json!({ "metadata": { "name": "shop" }, "status": { "phase": phase } });
    Arc::new(Namespace::decode(&object.to_string()).unwrap())
}
