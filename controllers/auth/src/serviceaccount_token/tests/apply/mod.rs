//! Tokens on an API server in the process.

mod faults;
mod life;
mod logs;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use kcm_framework::Extensions;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_framework::client::ClientAuthority;
use kcm_testing::sandbox::Sandbox;
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use super::key_file;
use crate::root_ca_certificate_publisher;
use crate::serviceaccount_token::DESCRIPTOR;
use crate::serviceaccount_token::secret::TokenSecret;
use crate::shared::ServiceAccount;

const SECRETS: Resource = TokenSecret::RESOURCE;
const ACCOUNTS: Resource = ServiceAccount::RESOURCE;
const SECOND: Duration = Duration::from_secs(1);

/// An environment with a namespace `shop` and the account `robot` in it.
fn environment() -> TestEnvironment {
    with_key(&key_file("es256.pem").display().to_string())
}

fn with_key(path: &str) -> TestEnvironment {
    let extensions = Extensions::default();
    extensions.insert(ClientAuthority::new("CA"));
    // The publisher has the row of --root-ca-file.
    TestEnvironment::new([DESCRIPTOR, root_ca_certificate_publisher::DESCRIPTOR])
        .select(&["-root-ca-certificate-publisher-controller"])
        .extensions(extensions)
        .arguments(&[&format!("--service-account-private-key-file={path}")])
        .namespace("shop")
        .prepare(|sandbox| {
            sandbox.create(&ACCOUNTS, json!({ "metadata": { "namespace": "shop", "name": "robot" } })).unwrap();
        })
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[SECRETS, ACCOUNTS]).await;
    cluster
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

/// A secret for the account `robot`, as a person creates it.
fn create_secret(sandbox: &Sandbox, name: &str) -> Value {
    let metadata = json!({
        "namespace": "shop", "name": name, "annotations": { "kubernetes.io/service-account.name": "robot" },
    });
    let secret = json!({ "metadata": metadata, "type": "kubernetes.io/service-account-token" });
    sandbox.create(&SECRETS, secret).expect("the secret must be valid")
}

fn robot(sandbox: &Sandbox) -> Value {
    sandbox.get(&ACCOUNTS, &key("robot")).expect("the account is there")
}

/// Lets the account reference secrets.
fn reference(sandbox: &Sandbox, names: &[&str]) {
    let secrets: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    sandbox.patch(&ACCOUNTS, &key("robot"), &json!({ "secrets": secrets })).expect("the account is there");
}

fn text(secret: &Value, field: &str) -> String {
    let encoded = secret["data"][field].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(encoded).expect("data is base64")).expect("it is text")
}

/// The claims of the token in a secret.
fn claims(secret: &Value) -> Value {
    let token = text(secret, "token");
    let claims = token.split('.').nth(1).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("it is base64")).unwrap_or_default()
}

fn has_token(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&SECRETS, &key(name)).is_some_and(|secret| !text(&secret, "token").is_empty())
}

async fn is_filled(cluster: &TestCluster, name: &str) -> Value {
    cluster.eventually("the token", |sandbox| has_token(sandbox, name)).await;
    cluster.sandbox().get(&SECRETS, &key(name)).unwrap_or_default()
}

async fn is_gone(cluster: &TestCluster, name: &str) {
    cluster.eventually("the secret is gone", |sandbox| sandbox.get(&SECRETS, &key(name)).is_none()).await;
}

/// Method and path of each write.
fn writes(cluster: &TestCluster) -> Vec<String> {
    let mut requests = cluster.requests_of("tokens-controller");
    requests.retain(|request| request.method != "GET");
    let line = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    requests.iter().map(|request| format!("{} {}", request.method, line(&request.path))).collect()
}
