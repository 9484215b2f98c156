// The controller of the examples: it labels every namespace with a greeting.

use kcm_framework::api::{KnownView as _, ObjectKey, views::Namespace};
use kcm_framework::client::{Patch, Payload, Subresource};
use kcm_framework::informers::{HandlerOptions, Informer, ListOptions};
use kcm_framework::{BoxError, BoxFuture, ControllerContext, ControllerDescriptor, Outcome, Reconcile, ReconcileError};
use kcm_framework::{Running, Session, async_trait, priority};

pub(crate) const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter", init);

fn init(context: &ControllerContext) -> BoxFuture<'_, Result<Option<Running>, BoxError>> {
    Box::pin(async move {
        let namespaces = context.informers().informer::<Namespace>(ListOptions::default());
        let queue = context.queue("greeter");
        let keys = queue.clone();
        namespaces.add_event_handler(HandlerOptions { name: "greeter", resync_period: None }, move |change, origin| {
            keys.add(change.key().clone(), priority(origin));
        });
        let greeter = Greeter(namespaces.clone());
        Ok(Some(Running::new().reconcile(context.reconcile_loop(queue, greeter).keyed_by(namespaces.cache()))))
    })
}

struct Greeter(Informer<Namespace>);

#[async_trait]
impl Reconcile for Greeter {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(namespace) = self.0.get(key) else { return Ok(Outcome::done()) };
        assert_ne!(key.name(), "evil", "the greeter does not greet evil");
        let is_greeted = namespace.metadata.labels.get("greeting").is_some_and(|greeting| *greeting == *"hello");
        if !is_greeted {
            let patch = serde_json::json!({ "metadata": { "labels": { "greeting": "hello" } } });
            session.patch(&Namespace::RESOURCE, key, Subresource::None, Patch::Merge(Payload::json(&patch))).await?;
        }
        Ok(Outcome::done())
    }
}
