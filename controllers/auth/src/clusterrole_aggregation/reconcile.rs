//! The order of a reconcile: plan, apply.

use std::sync::Arc;

use kcm_framework::informers::Informer;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use serde_json::json;

use super::NAME;
use super::plan::{may_aggregate, plan_rules};
use super::view::{ClusterRole, PolicyRule};

pub(super) struct Reconciler {
    pub(super) roles: Informer<ClusterRole>,
}

#[async_trait]
impl ReconcileObject<ClusterRole> for Reconciler {
    async fn reconcile(&self, role: &Arc<ClusterRole>, session: &Session) -> Result<(), ReconcileError> {
        let undecodable = self.roles.undecodable_objects();
        if let Some(other) = undecodable.iter().find(|other| may_aggregate(role, other.meta.as_ref())) {
            session.requeue_when_decodable(&self.roles.cache(), other);
            session.explain(|| format!("keeps its rules: the cluster role {} cannot be decoded", other.key));
            return Ok(());
        }
        if let Some(rules) = plan_rules(role, &self.roles.list()).map_err(ReconcileError::terminal)? {
            session.explain(|| format!("applies {} rules", rules.len()));
            tracing::info!(clusterRole = role.metadata.key.name(), rules = rules.len(), "Aggregating cluster roles");
            apply_rules(role, &rules, session).await?;
        }
        Ok(())
    }
}

/// Applies the rules. An empty list is left out, because the API server serves it as absent.
async fn apply_rules(role: &ClusterRole, rules: &[PolicyRule], session: &Session) -> Result<(), ReconcileError> {
    let metadata = &role.metadata;
    let mut configuration = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": metadata.key.name(), "uid": metadata.uid },
    });
    if !rules.is_empty() {
        configuration["rules"] = json!(rules);
    }
    session.apply::<ClusterRole>(&metadata.key, NAME, &configuration).await?;
    Ok(())
}
