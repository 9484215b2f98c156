//! The view of policies, and their specs.

use kcm_framework::api::{DecodeError, Documented, Resource};
use serde::Deserialize;

use super::kinds::{Kind, Rule, params_of};
use super::warnings::{Validation, Variable, Warning};

/// A policy with its JSON.
pub(super) type Policy = Documented<PolicyView>;

kcm_framework::api::view! {
    /// A policy that validates admission requests.
    pub(super) struct PolicyView {
        resource: Resource::cluster_scoped(
            "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
        );

        "status" {
            /// Generation of the spec that was checked last: `status.observedGeneration`.
            pub(super) observed_generation: i64 = "observedGeneration";
        }
    }
}

/// The parts of `spec` that decide the warnings.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PolicySpec {
    param_kind: Option<ParamKind>,
    match_constraints: Option<MatchConstraints>,
    pub(super) validations: Vec<Validation>,
    pub(super) variables: Vec<Variable>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParamKind {
    api_version: String,
    kind: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MatchConstraints {
    resource_rules: Vec<Rule>,
}

impl PolicySpec {
    /// Reads the spec of a policy.
    ///
    /// # Errors
    /// If a field has another type than the API server allows.
    pub(super) fn of(policy: &Policy) -> Result<Self, DecodeError> {
        let Some(spec) = policy.raw(&["spec"]) else { return Ok(Self::default()) };
        Ok(serde_json::from_str(spec.get())?)
    }

    /// Returns the rules about resources.
    pub(super) fn rules(&self) -> &[Rule] {
        self.match_constraints.as_ref().map_or(&[], |constraints| &constraints.resource_rules)
    }

    /// Returns the kind of the parameters.
    pub(super) fn params(&self) -> Option<Kind> {
        let params = self.param_kind.as_ref()?;
        params_of(&params.api_version, &params.kind)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TypeChecking {
    expression_warnings: Vec<Warning>,
}

/// Returns the warnings in the status of a policy.
///
/// A status without `typeChecking` has none: server-side apply drops the field when all warnings have gone.
pub(super) fn stored_warnings(policy: &Policy) -> Vec<Warning> {
    let Some(checking) = policy.raw(&["status", "typeChecking"]) else { return Vec::new() };
    serde_json::from_str::<TypeChecking>(checking.get()).unwrap_or_default().expression_warnings
}
