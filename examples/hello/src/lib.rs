//! A controller in a crate of its own: it labels every namespace with a greeting. A host depends on this crate **and
//! names it**, as in `use kcm_example_hello as _;`: a dependency that is not named is not linked, and registers nothing.

use std::sync::Arc;

use kcm_framework::api::views::Namespace;
use kcm_framework::config::{Section, Setting};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, async_trait};
use kcm_framework::{ReconcileError, ReconcileObject, Session};

/// The label that the controller sets.
pub const LABEL: &str = "example.com/greeting";

const SECTION: Section = Section::new("Hello", "HelloController");
const GREETING: Setting<String> =
    SECTION.string("hello-greeting", "Greeting", "hello").help("Value of the label example.com/greeting.");

/// The controller that labels namespaces.
pub const HELLO: ControllerDescriptor =
    ControllerDescriptor::new("hello-controller", init).aliases(&["hello"]).settings(const { &[GREETING.row()] });

kcm_framework::inventory::submit! { HELLO }

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("hello");
    let namespaces = control_loop.primary::<Namespace>();
    Ok(control_loop.reconcile_objects(namespaces, Hello(context.get(&GREETING)?)).into())
}

struct Hello(String);

#[async_trait]
impl ReconcileObject<Namespace> for Hello {
    async fn reconcile(&self, namespace: &Arc<Namespace>, session: &Session) -> Result<(), ReconcileError> {
        let is_greeted = namespace.metadata.labels.get(LABEL) == Some(&*self.0);
        if !is_greeted && !namespace.metadata.is_terminating() {
            let labels = serde_json::json!({ "metadata": { "labels": { LABEL: self.0 } } });
            session.merge_patch(&**namespace, labels).await?;
        }
        Ok(())
    }
}
