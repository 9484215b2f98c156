//! A controller of its own crate: it labels every namespace with a greeting.
//!
//! A host that wants it depends on this crate **and names it**, as in `use kcm_example_hello as _;`: a crate that is
//! only a dependency is not linked, and what is not linked registers nothing.

use kcm_framework::api::{KnownView as _, ObjectKey, views::Namespace};
use kcm_framework::client::{Patch, Payload, Subresource};
use kcm_framework::config::{Initial, Row};
use kcm_framework::informers::{HandlerOptions, Informer, ListOptions};
use kcm_framework::{BoxError, BoxFuture, ControllerContext, ControllerDescriptor, Running, async_trait, priority};
use kcm_framework::{Outcome, Reconcile, ReconcileError, Session};
use serde_json::json;

/// The label that the controller sets.
pub const LABEL: &str = "example.com/greeting";

const SETTINGS: &[Row] = &[Row::new("hello-greeting", "Hello", Initial::String("hello"))
    .path("HelloController.Greeting")
    .help("The value of the label example.com/greeting that every namespace gets.")];

/// The controller.
pub const HELLO: ControllerDescriptor =
    ControllerDescriptor::new("hello-controller", init).aliases(&["hello"]).settings(SETTINGS);

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Settings {
    greeting: String,
}

fn init(context: &ControllerContext) -> BoxFuture<'_, Result<Option<Running>, BoxError>> {
    Box::pin(async move {
        let Settings { greeting } = context.settings("HelloController")?;
        let namespaces = context.informers().informer::<Namespace>(ListOptions::default());
        let queue = context.queue("hello");
        let keys = queue.clone();
        namespaces.add_event_handler(HandlerOptions { name: "hello", resync_period: None }, move |change, origin| {
            keys.add(change.key().clone(), priority(origin));
        });
        let hello = Hello { greeting, namespaces: namespaces.clone() };
        Ok(Some(Running::new().reconcile(context.reconcile_loop(queue, hello).keyed_by(namespaces.cache()))))
    })
}

struct Hello {
    greeting: String,
    namespaces: Informer<Namespace>,
}

#[async_trait]
impl Reconcile for Hello {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(Outcome::done()) };
        let greeted = namespace.metadata.labels.get(LABEL) == Some(&*self.greeting);
        if !greeted && !namespace.metadata.is_terminating() {
            let patch = json!({ "metadata": { "uid": namespace.metadata.uid, "labels": { LABEL: self.greeting } } });
            session.patch(&Namespace::RESOURCE, key, Subresource::None, Patch::Merge(Payload::json(&patch))).await?;
        }
        Ok(Outcome::done())
    }
}

kcm_framework::inventory::submit! { HELLO }
