// The controller of the examples: it labels every namespace with a greeting.

use kcm_framework::api::{KnownView as _, ObjectKey, views::Namespace};
use kcm_framework::client::{Patch, Payload, Subresource};
use kcm_framework::informers::Informer;
use kcm_framework::{BoxError, BoxFuture, ControllerContext, ControllerDescriptor, Reconcile, ReconcileError};
use kcm_framework::{Loops, Session, async_trait};

pub(crate) const GREETER: ControllerDescriptor = ControllerDescriptor::new_async("greeter", init);

fn init(context: &ControllerContext) -> BoxFuture<'_, Result<Loops, BoxError>> {
    Box::pin(async move {
        let mut greeter = context.control_loop("greeter");
        let namespaces = greeter.primary::<Namespace>();
        Ok(Loops::new().with(greeter.reconcile(Greeter(namespaces))))
    })
}

struct Greeter(Informer<Namespace>);

#[async_trait]
impl Reconcile for Greeter {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(namespace) = self.0.get(key) else { return Ok(()) };
        assert_ne!(key.name(), "evil", "the greeter does not greet evil");
        let is_greeted = namespace.metadata.labels.get("greeting").is_some_and(|greeting| *greeting == *"hello");
        if !is_greeted {
            let patch = serde_json::json!({ "metadata": { "labels": { "greeting": "hello" } } });
            session.raw_patch(&Namespace::RESOURCE, key, Subresource::None, Patch::Merge(Payload::json(&patch))).await?;
        }
        Ok(())
    }
}
