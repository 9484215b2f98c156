//! One reconcile of an aggregated role.

use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;
use serde_json::json;

use super::NAME;
use super::plan::{may_aggregate, plan_rules};
use super::view::{ClusterRole, PolicyRule};

/// The reconciler.
pub(super) struct Reconciler {
    pub(super) roles: Informer<ClusterRole>,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(role) = self.roles.get(key) else { return Ok(()) };
        let undecodable = self.roles.undecodable_objects();
        if let Some(other) = undecodable.iter().find(|other| may_aggregate(&role, other.meta.as_ref())) {
            session.explain(|| format!("keeps its rules: the cluster role {} cannot be decoded", other.key));
            return Ok(());
        }
        let rules = plan_rules(&role, &self.roles.list());
        if let Some(rules) = rules.map_err(|error| ReconcileError::new(Class::Terminal, error))? {
            session.explain(|| format!("applies {} rules", rules.len()));
            tracing::info!(clusterRole = role.metadata.key.name(), rules = rules.len(), "Aggregating cluster roles");
            apply_rules(&role, &rules, session).await?;
        }
        Ok(())
    }
}

/// Applies the rules; an empty list is left out, as it is served.
async fn apply_rules(role: &ClusterRole, rules: &[PolicyRule], session: &Session) -> Result<(), ReconcileError> {
    let resource = const { &ClusterRole::RESOURCE };
    let metadata = &role.metadata;
    let mut configuration = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": metadata.key.name(), "uid": metadata.uid },
    });
    if !rules.is_empty() {
        configuration["rules"] = json!(rules);
    }
    session.raw_apply(resource, &metadata.key, NAME, &configuration).await?;
    Ok(())
}
