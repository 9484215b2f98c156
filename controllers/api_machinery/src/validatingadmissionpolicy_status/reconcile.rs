//! The order of the reconciles: discovery, schemas, warnings, write.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::discovery::Resources;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::apply_status;
use super::kinds::{Checked, Kind, Lookup, Role, Rule, kinds_of};
use super::policy::{Policy, PolicySpec, stored_warnings};
use super::resources::{Discovered, discovered, kinds_for};
use super::schemas::{Found, Schemas};
use super::status::is_due;
use super::unresolved::{Memory, MissingSchemas, Unresolved};
use super::warnings::{CheckedKind, Params, Warning, equal_but_for_digits};
use crate::fresh_discovery::FreshDiscovery;

/// Reconciles policies whose spec is new, or whose kinds can be resolved now.
pub(super) struct Reconciler {
    pub(super) discovery: FreshDiscovery,
    pub(super) schemas: Arc<Schemas>,
    pub(super) memory: Arc<Memory>,
}

/// A policy after its check.
struct CheckResult {
    warnings: Vec<Warning>,
    /// Kinds whose schemas were looked for.
    kinds: BTreeSet<String>,
    has_missing_schemas: bool,
}

#[async_trait]
impl ReconcileObject<Policy> for Reconciler {
    async fn reconcile(&self, policy: &Arc<Policy>, session: &Session) -> Result<(), ReconcileError> {
        let (key, generation) = (&policy.metadata.key, policy.metadata.generation);
        let spec = PolicySpec::of(policy).map_err(ReconcileError::terminal)?;
        let is_due = is_due(generation, policy.observed_generation);
        let known = self.memory.get(key, generation);
        let checked = self.kinds(spec.rules(), is_due).await?;

        if !is_due && !is_due_again(known.as_ref(), &checked, session) {
            session.explain(|| explain_rest(&checked, known.as_ref()));
            let schemas = known.and_then(|known| known.schemas);
            session.requeue_by(schemas.and_then(|schemas| schemas.next));
            self.memory.set(key, Unresolved { generation, resources: checked.unknown, schemas });
            return Ok(());
        }

        let result = self.check(&spec, &checked, session).await?;
        let missing = result.has_missing_schemas.then(|| {
            let previous = known.and_then(|known| known.schemas);
            MissingSchemas::after(previous, session.now())
        });
        session.requeue_by(missing.and_then(|missing| missing.next));
        if is_due || differs(policy, &result) {
            session.explain(|| explain_check(&checked, &result));
            apply_status(session, policy, &result.warnings).await?;
        } else {
            session.explain(|| format!("{}; the status has the result", explain_check(&checked, &result)));
        }
        self.memory.set(key, Unresolved { generation, resources: checked.unknown, schemas: missing });
        Ok(())
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.memory.forget(key);
        Ok(())
    }
}

impl Reconciler {
    /// Returns the kinds of rules. Discovery is read anew if it does not know a resource of a policy that must be checked.
    async fn kinds(&self, rules: &[Rule], is_due: bool) -> Result<Checked, ReconcileError> {
        let find = |resources: &Resources| {
            let discovered: Vec<Discovered> = discovered(resources);
            kinds_of(rules, |resource| -> Lookup { kinds_for(&discovered, resource) }, || {})
        };
        let checked = find(&self.discovery.resources());
        if !is_due || checked.unknown.is_empty() {
            return Ok(checked);
        }
        Ok(self.discovery.fresh().await?.map_or(checked, |resources| find(&resources)))
    }

    async fn check(
        &self,
        spec: &PolicySpec,
        checked: &Checked,
        session: &Session,
    ) -> Result<CheckResult, ReconcileError> {
        let params = spec.params();
        let mut wanted: Vec<(Kind, Role)> = checked.kinds.iter().map(|kind| (kind.clone(), Role::Object)).collect();
        wanted.extend(params.clone().map(|kind| (kind, Role::Params)));
        let found = self.schemas.find(&wanted, session.api()).await?;
        let has_missing_schemas = found.iter().any(|found| matches!(found, Found::Missing));

        let mut kinds = Vec::new();
        let mut of_params = if params.is_some() { Params::Unknown } else { Params::Undeclared };
        for ((kind, role), found) in wanted.iter().zip(found) {
            match (role, found) {
                (Role::Object, Found::Type(types)) => kinds.push(CheckedKind { kind: kind.clone(), types }),
                (Role::Params, Found::Type(Some(types))) => of_params = Params::Known(types),
                (Role::Object | Role::Params, Found::Missing) | (Role::Params, Found::Type(None)) => {}
            }
        }
        let warnings = self.schemas.checker().warnings(&spec.validations, &spec.variables, &kinds, &of_params);
        let kinds = wanted.into_iter().map(|(kind, _)| kind.kind).collect();
        Ok(CheckResult { warnings, kinds, has_missing_schemas })
    }
}

/// Returns `true` if a policy that was checked is checked again: something that was unresolved can be resolved now.
fn is_due_again(known: Option<&Unresolved>, checked: &Checked, session: &Session) -> bool {
    known.is_some_and(|known| {
        known.resources.iter().any(|resource| !checked.unknown.contains(resource))
            || known.schemas.is_some_and(|schemas| schemas.is_due(session.now()))
    })
}

fn differs(policy: &Policy, result: &CheckResult) -> bool {
    let kinds: Vec<&str> = result.kinds.iter().map(String::as_str).collect();
    !equal_but_for_digits(&stored_warnings(policy), &result.warnings, &kinds)
}

fn explain_rest(checked: &Checked, known: Option<&Unresolved>) -> String {
    let mut text = "the spec is checked".to_owned();
    if let Some(resource) = checked.unknown.first() {
        let more = checked.unknown.len() - 1;
        text = format!("{text}; discovery does not know {resource:?} and {more} more resources");
    }
    if known.is_some_and(|known| known.schemas.is_some()) {
        text.push_str("; schemas of its kinds are missing");
    }
    text
}

fn explain_check(checked: &Checked, result: &CheckResult) -> String {
    let unknown = checked.unknown.len();
    let missing = if result.has_missing_schemas { ", schemas are missing" } else { "" };
    let (kinds, warnings) = (checked.kinds.len(), result.warnings.len());
    format!("checks the expressions with {kinds} kinds ({unknown} resources unknown{missing}): {warnings} warnings")
}
