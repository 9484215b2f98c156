//! Assignability of types, and the values of type variables.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::Type;

/// Steps that the check of one expression may take. Types share their parts, so a short expression can have a type
/// whose text is longer than memory.
const MAX_STEPS: u32 = 5_000_000;
/// Depth of a type, with type variables replaced.
const MAX_TYPE_DEPTH: u32 = 400;

/// The values of type variables, and what is left of the steps.
///
/// An attempt that fails undoes its assignments. Once the steps are used up everything fails quickly.
pub(super) struct Solver {
    values: HashMap<Arc<str>, Type>,
    undo: Vec<(Arc<str>, Option<Type>)>,
    steps: u32,
    fresh: u32,
}

impl Solver {
    pub(super) fn new() -> Self {
        Self { values: HashMap::new(), undo: Vec::new(), steps: MAX_STEPS, fresh: 0 }
    }

    /// Returns `true` if the check took too many steps, so that its result means nothing.
    pub(super) fn exhausted(&self) -> bool {
        self.steps == 0
    }

    /// Counts a step. Returns `false` if there are no more.
    pub(super) fn step(&mut self, depth: u32) -> bool {
        self.steps = if depth > MAX_TYPE_DEPTH { 0 } else { self.steps.saturating_sub(1) };
        self.steps > 0
    }

    pub(super) fn variable(&mut self) -> Type {
        let variable = Type::Param(format!("_var{}", self.fresh).into());
        self.fresh += 1;
        variable
    }

    /// Returns `true` if values of `from` can be used as `to`, or the other way round, and keeps what that says about
    /// type variables.
    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        let possible = self.assign(from, to, 0);
        self.finish(possible)
    }

    /// Returns `true` if all arguments can be used, and keeps what that says about type variables.
    pub(super) fn all_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        let possible = from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.assign(from, to, 0));
        self.finish(possible)
    }

    fn finish(&mut self, possible: bool) -> bool {
        while let Some((name, value)) = self.undo.pop() {
            if possible {
                continue;
            }
            match value {
                Some(value) => self.values.insert(name, value),
                None => self.values.remove(&name),
            };
        }
        possible
    }

    fn bind(&mut self, name: &Arc<str>, value: Type) {
        let before = self.values.insert(Arc::clone(name), value);
        self.undo.push((Arc::clone(name), before));
    }

    fn assign(&mut self, from: &Type, to: &Type, depth: u32) -> bool {
        if !self.step(depth) {
            return false;
        }
        if let Type::Param(name) = to {
            match self.substitution(from, name, to, depth) {
                Substitution::Valid => return true,
                Substitution::Contradicts => return false,
                Substitution::Impossible => {}
            }
        }
        if let Type::Param(name) = from {
            return matches!(self.substitution(to, name, from, depth), Substitution::Valid);
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => accepts_null(other),
            (Type::List(from), Type::List(to)) => self.assign(from, to, depth + 1),
            (Type::Map(key, value), Type::Map(to_key, to_value)) => {
                self.assign(key, to_key, depth + 1) && self.assign(value, to_value, depth + 1)
            }
            (Type::Opaque(name, from), Type::Opaque(to_name, to)) => {
                name == to_name
                    && from.len() == to.len()
                    && from.iter().zip(to.iter()).all(|(from, to)| self.assign(from, to, depth + 1))
            }
            (Type::Type(_), Type::Type(_)) => true,
            (Type::Struct(from), Type::Struct(to)) => from == to,
            // The remaining types have no parts.
            (from, to) => is_leaf(from) && from.plain() == to.plain(),
        }
    }

    fn substitution(&mut self, of: &Type, name: &Arc<str>, variable: &Type, depth: u32) -> Substitution {
        if self.exact(of, variable, depth) {
            return Substitution::Valid;
        }
        if let Some(value) = self.values.get(name).cloned() {
            if self.exact(of, &value, depth) {
                return Substitution::Valid;
            }
            if !self.assign(of, &value, depth + 1) {
                return Substitution::Contradicts;
            }
            let general = if self.less_specific(of, &value, depth) { of.clone() } else { value };
            if !self.occurs(variable, &general, depth) {
                self.bind(name, general);
            }
            return Substitution::Valid;
        }
        if self.occurs(variable, of, depth) {
            return Substitution::Impossible;
        }
        self.bind(name, of.clone());
        Substitution::Valid
    }

    /// Returns the more general of two types that can be assigned to each other.
    pub(super) fn most_general(&mut self, one: &Type, other: &Type) -> Type {
        if self.less_specific(one, other, 0) { one.clone() } else { other.clone() }
    }

    fn less_specific(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.step(depth) || one.is_dyn() || matches!(one, Type::Param(_)) {
            return true;
        }
        if other.is_dyn() || matches!(other, Type::Param(_)) {
            return false;
        }
        match (one, other) {
            (Type::List(one), Type::List(other)) => self.less_specific(one, other, depth + 1),
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.less_specific(key, other_key, depth + 1) && self.less_specific(value, other_value, depth + 1)
            }
            (Type::Opaque(name, one), Type::Opaque(other_name, other)) => {
                name == other_name
                    && one.len() == other.len()
                    && one.iter().zip(other.iter()).all(|(one, other)| self.less_specific(one, other, depth + 1))
            }
            (Type::Type(_), Type::Type(_)) => true,
            (one, other) => self.exact(one, other, depth),
        }
    }

    /// Returns `true` if two types are the same. Wrappers are the same as what they wrap.
    pub(super) fn exact(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.step(depth) {
            return false;
        }
        match (one, other) {
            (Type::List(one), Type::List(other)) | (Type::Type(Some(one)), Type::Type(Some(other))) => {
                self.exact(one, other, depth + 1)
            }
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.exact(key, other_key, depth + 1) && self.exact(value, other_value, depth + 1)
            }
            (Type::Opaque(name, one), Type::Opaque(other_name, other)) => {
                name == other_name
                    && one.len() == other.len()
                    && one.iter().zip(other.iter()).all(|(one, other)| self.exact(one, other, depth + 1))
            }
            (Type::Struct(one), Type::Struct(other)) | (Type::Param(one), Type::Param(other)) => one == other,
            (Type::Type(None), Type::Type(None)) => true,
            (one, other) => is_leaf(one) && one.plain() == other.plain(),
        }
    }

    fn occurs(&mut self, variable: &Type, within: &Type, depth: u32) -> bool {
        if self.exact(variable, within, depth) || self.exhausted() {
            return true;
        }
        if let Type::Param(name) = within {
            let value = self.values.get(name).cloned();
            return value.is_some_and(|value| self.occurs(variable, &value, depth + 1));
        }
        within.inner().any(|inner| self.occurs(variable, inner, depth + 1))
    }

    /// Replaces type variables by their values.
    pub(super) fn substitute(&mut self, of: &Type) -> Type {
        self.replace(of, None, false, 0)
    }

    /// Replaces type variables by their values, and those without a value by `dyn`.
    pub(super) fn resolve(&mut self, of: &Type) -> Type {
        self.replace(of, None, true, 0)
    }

    /// Replaces the type parameters of a declaration.
    pub(super) fn instantiate(&mut self, of: &Type, parameters: &[(Arc<str>, Type)]) -> Type {
        self.replace(of, Some(parameters), false, 0)
    }

    fn replace(&mut self, of: &Type, parameters: Option<&[(Arc<str>, Type)]>, to_dyn: bool, depth: u32) -> Type {
        if !self.step(depth) {
            return Type::Error;
        }
        match of {
            Type::Param(name) => match parameters {
                Some(parameters) => {
                    let value = parameters.iter().find(|(parameter, _)| parameter == name);
                    value.map_or_else(|| of.clone(), |(_, value)| value.clone())
                }
                None => match self.values.get(name).cloned() {
                    Some(value) => self.replace(&value, None, to_dyn, depth + 1),
                    None if to_dyn => Type::Dyn,
                    None => of.clone(),
                },
            },
            Type::List(element) => Type::list(self.replace(element, parameters, to_dyn, depth + 1)),
            Type::Map(key, value) => Type::map(
                self.replace(key, parameters, to_dyn, depth + 1),
                self.replace(value, parameters, to_dyn, depth + 1),
            ),
            Type::Opaque(name, inner) => {
                let inner = inner.iter().map(|each| self.replace(each, parameters, to_dyn, depth + 1)).collect();
                Type::Opaque(Arc::clone(name), inner)
            }
            Type::Type(Some(inner)) => self.replace(inner, parameters, to_dyn, depth + 1).of_type(),
            Type::Dyn
            | Type::Any
            | Type::Error
            | Type::Null
            | Type::Bool
            | Type::Int
            | Type::Uint
            | Type::Double
            | Type::String
            | Type::Bytes
            | Type::Duration
            | Type::Timestamp
            | Type::Wrapper(_)
            | Type::Struct(_)
            | Type::Type(None) => of.clone(),
        }
    }
}

enum Substitution {
    Valid,
    /// The variable has a value that does not fit.
    Contradicts,
    /// The variable occurs within the type.
    Impossible,
}

fn is_leaf(of: &Type) -> bool {
    match of {
        Type::Dyn
        | Type::Any
        | Type::Error
        | Type::Null
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::Duration
        | Type::Timestamp
        | Type::Wrapper(_) => true,
        Type::List(_) | Type::Map(..) | Type::Struct(_) | Type::Opaque(..) | Type::Type(_) | Type::Param(_) => false,
    }
}

fn accepts_null(of: &Type) -> bool {
    match of {
        Type::Null
        | Type::Opaque(..)
        | Type::Struct(_)
        | Type::Any
        | Type::Duration
        | Type::Timestamp
        | Type::Wrapper(_)
        | Type::Dyn
        | Type::Param(_) => true,
        Type::Error
        | Type::Bool
        | Type::Int
        | Type::Uint
        | Type::Double
        | Type::String
        | Type::Bytes
        | Type::List(_)
        | Type::Map(..)
        | Type::Type(_) => false,
    }
}
