//! The futures that the manager runs can move between threads. Only compiled.

use kcm_api::{ObjectKey, Uid};
use kcm_framework::client::{ApiClient, ClientBuilder, Patch, Payload};
use kcm_framework::{
    ControlLoopBuilder, ControllerContext, ControllerDescriptor, Delete, Loop, Loops, Manager, Metrics, Reconcile,
    ReconcileError, Recorder, Registry, Selection, Session, Stop, async_trait,
};

use crate::guarantees::support::PARTS;

struct Nothing;

#[async_trait]
impl Reconcile for Nothing {
    async fn reconcile(&self, _key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        Ok(())
    }
}

const fn is_send<T: Send>(_: &T) {}
const fn are_shared<T: Send + Sync + 'static>() {}

fn futures(manager: Manager, session: &Session, context: &ControllerContext, key: &ObjectKey) {
    is_send(&session.of(&PARTS).create(key, Payload::raw("{}")));
    is_send(&session.of(&PARTS).update(key, Payload::raw("{}")));
    is_send(&session.of(&PARTS).patch_status(key, Patch::Merge(Payload::raw("{}"))));
    is_send(&session.of(&PARTS).delete(key, &Uid::default(), &Delete::default()));
    is_send(&context.informers_started());
    is_send::<ControlLoopBuilder>(&context.control_loop("nothing"));
    is_send(&context.control_loop("nothing").reconcile(Nothing));
    is_send(&manager.run(Stop::default()));
}

#[test]
fn everything_that_the_manager_runs_can_move_between_threads() {
    are_shared::<ApiClient>();
    are_shared::<ClientBuilder>();
    are_shared::<ControllerContext>();
    are_shared::<ControllerDescriptor>();
    are_shared::<Loop>();
    are_shared::<Metrics>();
    are_shared::<Recorder>();
    are_shared::<Registry>();
    are_shared::<Loops>();
    are_shared::<Selection>();
    are_shared::<Session>();
    are_shared::<Stop>();
    let _: fn(Manager, &Session, &ControllerContext, &ObjectKey) = futures;
}
