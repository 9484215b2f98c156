//! The type checker: a type for each node of a tree.

mod calls;
mod literals;
mod solver;

use std::collections::HashMap;

use crate::ast::{Ast, Expr, ExprId, ExprKind, Fold, Literal, Position};
use crate::environment::{Environment, TypeProvider};
use crate::issues::Log;
use crate::types::Type;
use solver::Solver;

/// An expression with the type of each of its parts.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(crate) ast: Ast,
    pub(crate) types: Vec<Type>,
    /// Names of functions that are not the name in the tree: without a leading dot, or with a namespace.
    pub(crate) functions: HashMap<ExprId, String>,
}

impl Checked {
    /// Returns the syntax tree, with macros expanded.
    #[must_use]
    pub fn ast(&self) -> &Ast {
        &self.ast
    }

    /// Returns the type of the whole expression.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        self.type_of(self.ast.root())
    }

    /// Returns the type of a part. Parts of a name with dots that stands for one variable are [`Type::Dyn`].
    ///
    /// # Panics
    ///
    /// Panics if the index belongs to a larger tree.
    #[must_use]
    pub fn type_of(&self, id: ExprId) -> &Type {
        &self.types[id.0 as usize]
    }
}

/// Checks a tree, and adds problems to the log. `None` if there are any.
pub(crate) fn check(
    ast: Ast,
    environment: &Environment,
    provider: &dyn TypeProvider,
    log: &mut Log,
) -> Option<Checked> {
    let mut checker = Checker {
        ast: &ast,
        environment,
        provider,
        scopes: Vec::new(),
        types: vec![None; ast.size()],
        functions: HashMap::new(),
        solver: Solver::new(),
        log,
    };
    checker.check(ast.root());
    let Checker { mut solver, types, functions, log, .. } = checker;
    let types = types.into_iter().map(|of| of.map_or(Type::Dyn, |of| solver.resolve(&of))).collect();
    if solver.exhausted() {
        // Earlier problems may be wrong.
        log.replace("the types of the expression are too complex to be checked");
    }
    log.is_empty().then_some(Checked { ast, types, functions })
}

struct Checker<'a> {
    ast: &'a Ast,
    environment: &'a Environment,
    provider: &'a dyn TypeProvider,
    /// Variables of loops, the innermost last.
    scopes: Vec<(&'a str, Type)>,
    types: Vec<Option<Type>>,
    functions: HashMap<ExprId, String>,
    solver: Solver,
    log: &'a mut Log,
}

/// Returns a name without its leading dot.
fn undotted(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

impl<'a> Checker<'a> {
    fn expr(&self, id: ExprId) -> &'a Expr {
        self.ast.expr(id)
    }

    fn position(&self, id: ExprId) -> Position {
        self.ast.expr(id).position
    }

    fn report(&mut self, position: Position, message: String) {
        self.log.report(Some(position), message);
    }

    fn set(&mut self, id: ExprId, of: Type) {
        self.types[id.0 as usize] = Some(of);
    }

    /// Returns the type of a part that has been checked.
    fn type_of(&self, id: ExprId) -> Type {
        self.types[id.0 as usize].clone().unwrap_or(Type::Error)
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.report(self.position(id), format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        self.report(self.position(id), format!("undeclared reference to '{name}' (in container '')"));
    }

    fn check(&mut self, id: ExprId) {
        // Every part of the tree is a step, so that a tree of many copies ends too.
        if !self.solver.step(0) {
            return;
        }
        match &self.expr(id).kind {
            ExprKind::Literal(literal) => self.set(id, literal_type(literal)),
            ExprKind::Ident(name) => {
                let of = self.simple(name);
                if of.is_none() {
                    self.undeclared(id, name);
                }
                self.set(id, of.unwrap_or(Type::Error));
            }
            ExprKind::Select { operand, field } => self.check_select(id, *operand, field),
            ExprKind::Has { operand, field } => {
                self.check_field(id, *operand, field, false);
                self.set(id, Type::Bool);
            }
            ExprKind::Call { target, function, args } => self.check_call(id, *target, function, args),
            ExprKind::List(elements) => self.check_list(id, elements),
            ExprKind::Map(entries) => self.check_map(id, entries),
            ExprKind::Struct { name, fields } => self.check_struct(id, name, fields),
            ExprKind::Fold(fold) => self.check_fold(id, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Type> {
        let name = undotted(name);
        self.scopes.iter().rev().find(|(each, _)| *each == name).map(|(_, of)| of)
    }

    fn global(&self, name: &str) -> Option<Type> {
        let name = undotted(name);
        let variable = self.environment.variable(name).cloned();
        variable
            .or_else(|| self.named_type(name).map(Type::of_type))
            .or_else(|| self.environment.constant(name).cloned())
    }

    fn named_type(&self, name: &str) -> Option<Type> {
        let environment = self.environment;
        let named = environment.named_type(name).cloned();
        named
            .or_else(|| self.provider.find_type(name))
            .or_else(|| environment.message(name).map(|message| message.of.clone()))
    }

    /// Returns the type of a variable. A leading dot skips the variables of loops.
    fn simple(&self, name: &str) -> Option<Type> {
        if name.starts_with('.') { None } else { self.local(name).cloned() }.or_else(|| self.global(name))
    }

    /// Returns the name that a chain of selections may be, the last field last.
    fn qualified(&self, operand: ExprId) -> Option<String> {
        let mut fields: Vec<&str> = Vec::new();
        let mut at = operand;
        loop {
            match &self.expr(at).kind {
                ExprKind::Ident(name) => {
                    let mut whole = name.clone();
                    for field in fields.iter().rev() {
                        whole.push('.');
                        whole.push_str(field);
                    }
                    return Some(whole);
                }
                ExprKind::Select { operand, field } => {
                    fields.push(field.as_str());
                    at = *operand;
                }
                ExprKind::Literal(_)
                | ExprKind::Has { .. }
                | ExprKind::Call { .. }
                | ExprKind::List(_)
                | ExprKind::Map(_)
                | ExprKind::Struct { .. }
                | ExprKind::Fold(_) => return None,
            }
        }
    }

    /// Returns the type of a name with dots, unless it begins with a variable of a loop.
    fn qualified_type(&self, id: ExprId) -> Option<Type> {
        let name = self.qualified(id)?;
        let rest = undotted(&name);
        let first = rest.split('.').next().unwrap_or(rest);
        if !name.starts_with('.') && self.local(first).is_some() { None } else { self.global(&name) }
    }

    fn check_select(&mut self, id: ExprId, operand: ExprId, field: &str) {
        if let Some(of) = self.qualified_type(id) {
            return self.set(id, of);
        }
        let of = self.check_field(id, operand, field, false);
        let of = self.solver.substitute(&of);
        self.set(id, of);
    }

    /// Checks the operand of a selection and returns the type of the field.
    fn check_field(&mut self, id: ExprId, operand: ExprId, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.type_of(operand);
        let operand = self.solver.substitute(&operand);
        let content = operand.content();
        let target = content.unwrap_or(&operand);
        let result = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) => self.field(self.position(id), name, field).unwrap_or(Type::Error),
            Type::Param(_) => {
                self.solver.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            Type::Null
            | Type::Bool
            | Type::Int
            | Type::Uint
            | Type::Double
            | Type::String
            | Type::Bytes
            | Type::Duration
            | Type::Timestamp
            | Type::Wrapper(_)
            | Type::List(_)
            | Type::Opaque(..)
            | Type::Type(_) => {
                self.report(self.position(id), format!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || content.is_some() { Type::optional(result) } else { result }
    }

    /// Returns the type of a field, or reports that there is none.
    fn field(&mut self, position: Position, type_name: &str, field: &str) -> Option<Type> {
        let found = if self.provider.find_type(type_name).is_some() {
            self.provider.find_field(type_name, field)
        } else if let Some(message) = self.environment.message(type_name) {
            message.fields.get(field).cloned()
        } else {
            self.report(position, format!("unexpected failed resolution of '{type_name}'"));
            return None;
        };
        if found.is_none() {
            self.report(position, format!("undefined field '{field}'"));
        }
        found
    }

    fn check_fold(&mut self, id: ExprId, fold: &'a Fold) {
        self.check(fold.range);
        self.check(fold.initial);
        let range = self.type_of(fold.range);
        let range = self.solver.substitute(&range);
        let accumulator = self.type_of(fold.initial);
        let outside = self.scopes.len();
        self.scopes.push((&fold.accumulator, accumulator.clone()));
        let (first, second) = match &range {
            Type::List(element) if fold.second.is_some() => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.solver.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            Type::Any
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
            | Type::Opaque(..)
            | Type::Type(_) => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(self.position(fold.range), message);
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push((&fold.variable, first));
        if let Some(name) = &fold.second {
            self.scopes.push((name, second));
        }
        self.check(fold.condition);
        self.assert(fold.condition, &Type::Bool);
        self.check(fold.step);
        self.assert(fold.step, &accumulator);
        self.scopes.truncate(outside + 1);
        self.check(fold.result);
        self.scopes.truncate(outside);
        let result = self.type_of(fold.result);
        let result = self.solver.substitute(&result);
        self.set(id, result);
    }

    fn assert(&mut self, id: ExprId, expected: &Type) {
        let found = self.type_of(id);
        if !self.solver.assignable(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
