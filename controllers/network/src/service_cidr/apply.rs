//! The requests of a reconcile.

use kcm_framework::Session;
use kcm_framework::api::KnownView as _;
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::views::ServiceCidr;
use kcm_framework::client::{ApiError, Patch, ResponseExt as _};
use kcm_framework::events::EventText;
use serde_json::json;

use super::NAME;
use super::plan::{FINALIZER, Plan, READY, Readiness};

/// Writes what is planned. A service CIDR that does not exist any more is no error.
pub(super) async fn apply(session: &Session, cidr: &ServiceCidr, plan: Plan) -> Result<(), ApiError> {
    match plan {
        Plan::Use { adds_finalizer, sets_condition } => {
            if adds_finalizer {
                session.add_finalizer(cidr, FINALIZER).await.ignore_not_found()?;
            }
            if sets_condition {
                apply_condition(session, cidr, Readiness::Ready).await.inspect_err(|_| {
                    let message = "The ServiceCIDR Status can not be set to Ready=True";
                    session.record(cidr, &EventText::warning("KubernetesServiceCIDRError", message));
                })?;
            }
        }
        Plan::Blocked { sets_condition: true } => apply_condition(session, cidr, Readiness::Terminating).await?,
        Plan::Release { removes_finalizer: true } => {
            session.remove_finalizer(cidr, FINALIZER).await.ignore_not_found()?;
        }
        Plan::Wait { until } => session.requeue_by(until),
        Plan::Blocked { sets_condition: false } | Plan::Release { removes_finalizer: false } => {}
    }
    Ok(())
}

/// Applies the condition, and keeps the conditions of other clients.
async fn apply_condition(session: &Session, cidr: &ServiceCidr, readiness: Readiness) -> Result<(), ApiError> {
    let (status, reason, message) = readiness.fields();
    let resource = const { &ServiceCidr::RESOURCE };
    let configuration = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": cidr.metadata.key.name(), "uid": cidr.metadata.uid },
        "status": { "conditions": [{
            "type": READY,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": format_seconds(session.now()),
        }] },
    });
    let applied = session.patch_status(cidr, Patch::apply(NAME, &configuration)).await;
    // The addition of a recreated one has enqueued it.
    applied.ignore(|error| error.is_not_found() || error.is_other_object()).map(drop)
}
