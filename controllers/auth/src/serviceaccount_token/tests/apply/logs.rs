//! No log line, at any level, has a token or a key.

use kcm_testing::sandbox::{Fault, Status, Verb};

use super::{SECRETS, create_secret, environment, is_filled, key, start, text};
use crate::tests::logs::Lines;

#[tokio::test(start_paused = true)]
async fn no_token_is_logged_at_any_level_whatever_fails() {
    let cluster = start(environment()).await;
    let (lines, _guard) = Lines::capture();
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(SECRETS).times(2).fail(refused));
    create_secret(cluster.sandbox(), "token");
    let secret = is_filled(&cluster, "token").await;
    cluster.sandbox().delete(&SECRETS, &key("token")).unwrap();
    cluster.settle().await;
    let (token, logged) = (text(&secret, "token"), lines.text());
    let signature = token.rsplit('.').next().unwrap_or_default();
    let encoded = secret["data"]["token"].as_str().unwrap_or_default();
    assert!(logged.contains("a policy refuses it"), "the lines are captured: {logged}");
    assert!(!token.is_empty() && !logged.contains(&token) && !logged.contains(signature) && !logged.contains(encoded));
}
