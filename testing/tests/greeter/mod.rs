// The controller of the examples: it labels every namespace with a greeting.

use std::sync::Arc;

use kcm_framework::api::views::Namespace;
use kcm_framework::client::{Patch, Payload};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, ReconcileError, ReconcileObject};
use kcm_framework::{Loops, Session, async_trait};

pub(crate) const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter", init);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("greeter");
    let namespaces = control_loop.primary::<Namespace>();
    Ok(control_loop.reconcile_objects(namespaces, Greeter).into())
}

struct Greeter;

#[async_trait]
impl ReconcileObject<Namespace> for Greeter {
    async fn reconcile(&self, namespace: &Arc<Namespace>, session: &Session) -> Result<(), ReconcileError> {
        assert_ne!(namespace.metadata.key.name(), "evil", "the greeter does not greet evil");
        let is_greeted = namespace.metadata.labels.get("greeting").is_some_and(|greeting| *greeting == *"hello");
        if !is_greeted {
            let patch = serde_json::json!({ "metadata": { "labels": { "greeting": "hello" } } });
            session.patch(&**namespace, Patch::Merge(Payload::json(&patch))).await?;
        }
        Ok(())
    }
}
