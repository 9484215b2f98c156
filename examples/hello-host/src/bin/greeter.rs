//! A whole program with one controller, as README and docs/plugins.md show it: it labels every namespace.

use kcm_framework::api::{ObjectKey, views::Namespace};
use kcm_framework::informers::Informer;
use kcm_framework::{ControllerDescriptor, Outcome, Reconcile, ReconcileError, Running, Session, async_trait};

const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter-controller", |context| {
    let mut greeter = context.control_loop("greeter");
    let reconciler = Greeter(greeter.primary());
    let running = Running::new().with(greeter.reconcile(reconciler));
    Box::pin(async { Ok(Some(running)) })
});
kcm_framework::inventory::submit! { GREETER }

struct Greeter(Informer<Namespace>);

#[async_trait]
impl Reconcile for Greeter {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(namespace) = self.0.get(key) else { return Ok(Outcome::done()) };
        if namespace.metadata.labels.get("greeting").is_none() {
            let patch = serde_json::json!({ "metadata": { "labels": { "greeting": "hello" } } });
            session.merge_patch(&*namespace, patch).await?;
        }
        Ok(Outcome::done())
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
