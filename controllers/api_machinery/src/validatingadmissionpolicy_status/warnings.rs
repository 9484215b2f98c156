//! The warnings about the expressions of a policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_cel::{Environment, Issues, Type, TypeProvider, kubernetes};
use serde::Deserialize;

use super::kinds::Kind;
use super::types::{Types, common};

/// One entry of `spec.validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// Expression that must be true.
    #[serde(default)]
    pub expression: String,
    /// Expression of the message; empty if there is none.
    #[serde(default)]
    pub message_expression: String,
}

/// One entry of `spec.variables`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Variable {
    /// Name of the field of `variables`.
    #[serde(default)]
    pub name: String,
    /// Expression of the value.
    #[serde(default)]
    pub expression: String,
}

/// A kind that a policy is checked with.
#[derive(Clone, Debug)]
pub struct CheckedKind {
    /// The kind that warnings name.
    pub kind: Kind,
    /// Its type with all types in it, or `None` if expressions cannot see its fields.
    pub types: Option<Arc<(Type, Types)>>,
}

/// The parameters of a policy.
#[derive(Clone, Debug)]
pub enum Params {
    /// The policy has none; `params` is not declared.
    Undeclared,
    /// The type of the parameters is not known; `params` can be anything.
    Unknown,
    /// The type of the parameters with all types in it.
    Known(Arc<(Type, Types)>),
}

/// A warning about an expression, as `status.typeChecking.expressionWarnings` has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// Path of the field with the expression.
    pub field_ref: String,
    /// Problems with each kind.
    pub warning: String,
}

/// Checks expressions of policies.
#[derive(Debug)]
pub struct Checker {
    environment: Environment,
    common: Types,
}

impl Default for Checker {
    fn default() -> Self {
        Self::new()
    }
}

const VARIABLES: &str = "kubernetes.variables";

impl Checker {
    /// Returns a checker. It holds all declarations, so that one should be kept.
    #[must_use]
    pub fn new() -> Self {
        let environment = kubernetes::stored_expressions()
            .with_variable("namespaceObject", Type::object("kubernetes.Namespace"))
            .with_variable("request", Type::object("kubernetes.AdmissionRequest"))
            .with_variable("authorizer", Type::object("kubernetes.authorization.Authorizer"))
            .with_variable("variables", Type::object(VARIABLES));
        Self { environment, common: common() }
    }

    /// Returns the warnings about the validations of a policy, in their order. Match conditions and audit annotations
    /// are not checked.
    #[must_use]
    pub fn warnings(
        &self,
        validations: &[Validation],
        variables: &[Variable],
        kinds: &[CheckedKind],
        params: &Params,
    ) -> Vec<Warning> {
        let scopes: Vec<(&Kind, Scope<'_>)> =
            kinds.iter().map(|each| (&each.kind, self.scope(each, variables, params))).collect();
        let mut found = Vec::new();
        let mut check = |field_ref: String, expression: &str| {
            let texts: Vec<String> = scopes
                .iter()
                .filter_map(|(kind, scope)| scope.check(expression).err().map(|issues| format!("{kind}: {issues}\n")))
                .collect();
            if !texts.is_empty() {
                found.push(Warning { field_ref, warning: texts.join("\n") });
            }
        };
        for (i, validation) in validations.iter().enumerate() {
            check(format!("spec.validations[{i}].expression"), &validation.expression);
            if !validation.message_expression.is_empty() {
                check(format!("spec.validations[{i}].messageExpression"), &validation.message_expression);
            }
        }
        found
    }

    fn scope<'a>(&'a self, kind: &'a CheckedKind, variables: &[Variable], params: &'a Params) -> Scope<'a> {
        let object = kind.types.as_deref();
        let object_type = object.map_or(Type::Dyn, |(of, _)| of.clone());
        let mut environment = self
            .environment
            .clone()
            .with_variable("object", object_type.clone())
            .with_variable("oldObject", object_type);
        let params = match params {
            Params::Undeclared => None,
            Params::Unknown => {
                environment = environment.with_variable("params", Type::Dyn);
                None
            }
            Params::Known(known) => {
                environment = environment.with_variable("params", known.0.clone());
                Some(&known.1)
            }
        };
        let types = [Some(&self.common), object.map(|(_, types)| types), params].into_iter().flatten().collect();
        let mut scope = Scope { environment, types, variables: BTreeMap::new() };
        for variable in variables {
            // Problems of variables are not reported. The API server has refused what matters.
            let of = scope.check(&variable.expression).map_or(Type::Dyn, |of| visible(&of));
            scope.variables.insert(variable.name.clone(), of);
        }
        scope
    }
}

/// The variables and types that expressions see for one kind.
struct Scope<'a> {
    environment: Environment,
    types: Vec<&'a Types>,
    variables: BTreeMap<String, Type>,
}

impl Scope<'_> {
    fn check(&self, expression: &str) -> Result<Type, Issues> {
        self.environment.compile(expression, self).map(|checked| checked.result_type().clone())
    }
}

impl TypeProvider for Scope<'_> {
    fn find_type(&self, name: &str) -> Option<Type> {
        match name {
            "duration" => Some(Type::Duration),
            "timestamp" => Some(Type::Timestamp),
            VARIABLES => Some(Type::object(VARIABLES)),
            _ => self.types.iter().find_map(|types| types.find_type(name)),
        }
    }

    fn find_field(&self, type_name: &str, field: &str) -> Option<Type> {
        if type_name == VARIABLES {
            return self.variables.get(field).cloned();
        }
        self.types.iter().find_map(|types| types.find_field(type_name, field))
    }
}

/// Returns the type that a variable has in other expressions: simple types, lists and maps keep theirs, everything else
/// can be anything.
fn visible(of: &Type) -> Type {
    match of {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(element) => Type::list(visible(element)),
        Type::Map(key, value) => Type::map(visible(key), visible(value)),
        Type::Dyn
        | Type::Error
        | Type::Wrapper(_)
        | Type::Struct(_)
        | Type::Opaque(..)
        | Type::Type(_)
        | Type::Param(_) => Type::Dyn,
    }
}

/// Returns `true` if two lists of warnings differ in nothing but the digits after the names of kinds.
///
/// Upstream writes the nanoseconds of the clock there, so that its warnings need not be written again.
#[must_use]
pub fn equal_but_for_digits(one: &[Warning], other: &[Warning], kinds: &[&str]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.field_ref == other.field_ref
                && without_digits(&one.warning, kinds) == without_digits(&other.warning, kinds)
        })
}

/// Replaces the digits that follow the name of a kind by `#`.
#[must_use]
pub fn without_digits(text: &str, kinds: &[&str]) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kind =
            kinds.iter().filter(|kind| !kind.is_empty() && rest.starts_with(**kind)).max_by_key(|kind| kind.len());
        let Some(kind) = kind else {
            replaced.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        replaced.push_str(kind);
        let after = &rest[kind.len()..];
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() < after.len() {
            replaced.push('#');
        }
    }
    replaced
}
