//! The order of a reconcile: observe, plan, write.

use std::net::IpAddr;

use kcm_api::time::format_seconds;
use kcm_api::views::ServiceCidr;
use kcm_api::{KnownView as _, ObjectKey, PartialObjectMeta};
use kcm_framework::client::{ApiError, Patch, Subresource};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;
use serde_json::json;

use super::event_mapping::allocated;
use super::events::ConditionNotWritten;
use super::plan::{FINALIZER, Plan, READY, Readiness, plan};

/// The field manager of the condition.
const FIELD_MANAGER: &str = "service-cidr-controller";

/// Reconciles service CIDRs.
pub(super) struct Reconciler {
    pub(super) cidrs: Informer<ServiceCidr>,
    pub(super) addresses: Informer<PartialObjectMeta>,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(cidr) = self.cidrs.get(key) else { return Ok(()) };
        // Only a deletion asks for the other service CIDRs, which a list sorts, and for the addresses, which are as many as
        // there are services.
        let (all, addresses): (_, Vec<IpAddr>) = if cidr.metadata.is_terminating() {
            let addresses = self.addresses.list();
            (self.cidrs.list(), addresses.iter().filter_map(|address| allocated(address)).collect())
        } else {
            (Vec::new(), Vec::new())
        };
        let plan = plan(&cidr, &all, &addresses, session.now());
        session.explain(|| plan.explain());
        match plan {
            Plan::Use { adds_finalizer, sets_condition } => {
                if adds_finalizer {
                    let added =
                        session.raw_add_finalizer(const { &ServiceCidr::RESOURCE }, &cidr.metadata, FINALIZER).await;
                    unless_gone(added)?;
                }
                if sets_condition {
                    apply_condition(session, &cidr, Readiness::Ready).await.inspect_err(|_| {
                        session.record(&*cidr, &ConditionNotWritten);
                    })?;
                }
            }
            Plan::Blocked { sets_condition } => {
                if sets_condition {
                    apply_condition(session, &cidr, Readiness::Terminating).await?;
                }
            }
            Plan::Wait { until } => return Ok(session.requeue_by(until)),
            Plan::Release { removes_finalizer } => {
                if removes_finalizer {
                    let removed =
                        session.raw_remove_finalizer(const { &ServiceCidr::RESOURCE }, &cidr.metadata, FINALIZER).await;
                    unless_gone(removed)?;
                }
            }
        }
        Ok(())
    }
}

/// A service CIDR that is gone is no error.
fn unless_gone<T>(written: Result<T, ApiError>) -> Result<(), ApiError> {
    match written {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Applies the condition; conditions of others stay. A service CIDR that is gone, or was recreated, is left alone.
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
    let patch = Patch::apply(FIELD_MANAGER, &configuration);
    match session.raw_patch(resource, &cidr.metadata.key, Subresource::Status, patch).await {
        // The addition of the one that was recreated has enqueued it.
        Err(error) if has_other_uid(&error) => Ok(()),
        written => unless_gone(written),
    }
}

/// Whether the object of that name is not the one that the request is about.
fn has_other_uid(error: &ApiError) -> bool {
    let details = error.status().map(|status| &status.details);
    details.is_some_and(|details| details.causes.iter().any(|cause| cause.field == "metadata.uid"))
}
