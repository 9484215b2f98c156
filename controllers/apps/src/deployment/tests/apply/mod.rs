//! Whole reconciles on an API server in the process.

mod answers;
mod claims;
mod creation;
mod faults;
mod flows;

use serde_json::{Value, json};

/// The merge patch that gives the deployment another template.
fn with_image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}
