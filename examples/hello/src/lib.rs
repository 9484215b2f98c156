//! A controller in a crate of its own: it labels every namespace with a greeting. A host depends on this crate **and
//! names it**, as in `use kcm_example_hello as _;`: what is only a dependency is not linked, and registers nothing.

use kcm_framework::api::{ObjectKey, views::Namespace};
use kcm_framework::config::{Initial, Row};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, async_trait, informers::Informer};
use kcm_framework::{Reconcile, ReconcileError, Session};

/// The label that the controller sets.
pub const LABEL: &str = "example.com/greeting";
const SETTINGS: &[Row] = &[Row::new("hello-greeting", "Hello", Initial::String("hello"))
    .path("HelloController.Greeting")
    .help("The value of the label example.com/greeting that every namespace gets.")];
/// The controller.
pub const HELLO: ControllerDescriptor =
    ControllerDescriptor::new_async("hello-controller", |context| Box::pin(async { init(context) }))
        .aliases(&["hello"])
        .settings(SETTINGS);
kcm_framework::inventory::submit! { HELLO }

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut hello = context.control_loop("hello");
    let reconciler = Hello { namespaces: hello.primary(), greeting: context.setting("hello-greeting")? };
    Ok(Loops::new().with(hello.reconcile(reconciler)))
}

struct Hello {
    namespaces: Informer<Namespace>,
    greeting: String,
}

#[async_trait]
impl Reconcile for Hello {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(namespace) = self.namespaces.get(key) else { return Ok(()) };
        let greeted = namespace.metadata.labels.get(LABEL) == Some(&*self.greeting);
        if !greeted && !namespace.metadata.is_terminating() {
            let labels = serde_json::json!({ "metadata": { "labels": { LABEL: self.greeting } } });
            session.merge_patch(&*namespace, labels).await?;
        }
        Ok(())
    }
}
