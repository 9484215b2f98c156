//! No log line, at any level, has a token or a key.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use kcm_testing::sandbox::{Fault, Status, Verb};

use super::{SECRETS, create_secret, environment, is_filled, key, start, text};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<String>>);

impl Visit for Lines {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        use std::fmt::Write as _;
        writeln!(self.0.lock(), "{field}={value:?}").expect("a string accepts everything");
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record_debug(field, &kcm_framework::error_chain(value));
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        attributes.record(&mut self.clone());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn no_token_is_logged_at_any_level_whatever_fails() {
    let cluster = start(environment()).await;
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(Registry::default().with(lines.clone()));
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(SECRETS).times(2).fail(refused));
    create_secret(cluster.sandbox(), "token");
    let secret = is_filled(&cluster, "token").await;
    cluster.sandbox().delete(&SECRETS, &key("token")).unwrap();
    cluster.settle().await;
    let (token, logged) = (text(&secret, "token"), lines.0.lock().clone());
    let signature = token.rsplit('.').next().unwrap_or_default();
    let encoded = secret["data"]["token"].as_str().unwrap_or_default();
    assert!(logged.contains("a policy refuses it"), "the lines are captured: {logged}");
    assert!(!token.is_empty() && !logged.contains(&token) && !logged.contains(signature) && !logged.contains(encoded));
}
