mod apply;
mod event_mapping;
mod plan;
mod signer;

use std::path::PathBuf;
use std::sync::Arc;

use kcm_framework::api::View as _;
use serde_json::{Value, json};

use super::secret::TokenSecret;

/// The path of a file with a key.
fn key_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/serviceaccount_token/tests/data").join(name)
}

/// A secret for the account `robot`.
fn secret(name: &str, account_uid: &str, data: &Value) -> Value {
    let mut annotations = json!({ "kubernetes.io/service-account.name": "robot" });
    if !account_uid.is_empty() {
        annotations["kubernetes.io/service-account.uid"] = json!(account_uid);
    }
    let metadata =
        json!({ "namespace": "shop", "name": name, "uid": format!("uid-{name}"), "annotations": annotations });
    json!({ "metadata": metadata, "type": "kubernetes.io/service-account-token", "data": data })
}

fn view(secret: &Value) -> Arc<TokenSecret> {
    Arc::new(TokenSecret::decode(&secret.to_string()).expect("it is a secret"))
}
