//! A whole program with one controller, as README and docs/plugins.md show it: it labels every namespace.

use std::sync::Arc;

use kcm_framework::api::views::Namespace;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, async_trait};
use kcm_framework::{ReconcileError, ReconcileObject, Session};

const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter-controller", init);
kcm_framework::inventory::submit! { GREETER }

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("greeter");
    let namespaces = control_loop.primary::<Namespace>();
    Ok(control_loop.reconcile_objects(namespaces, Greeter).into())
}

struct Greeter;

#[async_trait]
impl ReconcileObject<Namespace> for Greeter {
    async fn reconcile(&self, namespace: &Arc<Namespace>, session: &Session) -> Result<(), ReconcileError> {
        if namespace.metadata.labels.get("greeting").is_none() {
            let patch = serde_json::json!({ "metadata": { "labels": { "greeting": "hello" } } });
            session.merge_patch(&**namespace, patch).await?;
        }
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    kcm_controller_manager::main()
}

#[cfg(test)]
mod tests {
    use kcm_testing::TestEnvironment;
    use kcm_testing::sandbox::NAMESPACES;

    use super::GREETER;

    #[tokio::test(start_paused = true)]
    async fn greets_every_namespace() {
        let cluster = TestEnvironment::new([GREETER]).start().await;
        let greeted = |namespace: &serde_json::Value| namespace["metadata"]["labels"]["greeting"] == "hello";
        cluster.eventually("all are greeted", |sandbox| sandbox.list(&NAMESPACES, None).iter().all(greeted)).await;
    }
}
