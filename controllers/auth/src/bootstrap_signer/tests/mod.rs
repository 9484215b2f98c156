mod apply;
mod event_mapping;
mod plan;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcm_framework::api::View as _;
use serde_json::{Value, json};

use crate::shared::BootstrapToken;

const PAYLOAD: &str = "payload";

/// The signature of the payload with the id `abc123` and the secret `tokenSecret`.
const SIGNATURE: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiYzEyMyJ9..QSxpUG7Q542CirTI2ECPSZjvBOJURUW5a7XqFpNI958";

/// The Secret of a token, with these values in its data.
fn secret(name: &str, values: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        values.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
    json!({
        "metadata": { "name": name, "namespace": "kube-system" },
        "type": "bootstrap.kubernetes.io/token",
        "data": data,
    })
}

/// The Secret of a token that signs.
fn signing(id: &str, expiration: &str) -> Value {
    let name = format!("bootstrap-token-{id}");
    let value = "tokenSecret";
    secret(
        &name,
        &[("token-id", id), ("token-secret", value), ("expiration", expiration), ("usage-bootstrap-signing", "true")],
    )
}

fn view(secret: &Value) -> Arc<BootstrapToken> {
    Arc::new(BootstrapToken::decode(&secret.to_string()).unwrap())
}
