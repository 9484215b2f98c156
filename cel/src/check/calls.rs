//! Calls and the choice among the signatures of a function.

use std::sync::Arc;

use super::{Checker, undotted};
use crate::ast::{ExprId, ExprKind, Literal};
use crate::environment::Environment;
use crate::types::Type;

impl<'a> Checker<'a> {
    pub(super) fn check_call(&mut self, id: ExprId, target: Option<ExprId>, function: &'a str, args: &'a [ExprId]) {
        if function == "_?._" {
            return self.check_optional_select(id, args);
        }
        for arg in args {
            self.check(*arg);
        }
        let Some(target) = target else {
            if function.starts_with('.') {
                self.functions.insert(id, undotted(function).to_owned());
            }
            return self.resolve(id, function, None, args);
        };
        // A receiver may be the namespace of the function, and is no expression then.
        if let Some(prefix) = self.qualified(target) {
            let whole = format!("{prefix}.{function}");
            if self.environment.overloads(undotted(&whole)).is_some() {
                self.resolve(id, &whole, None, args);
                self.functions.insert(id, undotted(&whole).to_owned());
                return;
            }
        }
        self.check(target);
        self.resolve(id, function, Some(target), args);
    }

    fn check_optional_select(&mut self, id: ExprId, args: &[ExprId]) {
        let [operand, field] = args else { return self.set(id, Type::Error) };
        // The parser makes the field a string.
        let ExprKind::Literal(Literal::String(field)) = &self.expr(*field).kind else {
            return self.set(id, Type::Error);
        };
        let of = self.check_field(id, *operand, field, true);
        let of = self.solver.substitute(&of);
        self.set(id, of);
    }

    fn resolve(&mut self, id: ExprId, function: &str, target: Option<ExprId>, args: &[ExprId]) {
        let name = undotted(function);
        if self.environment.overloads(name).is_none() {
            self.set(id, Type::Error);
            return self.undeclared(id, function);
        }
        let result =
            if name == "_&&_" || name == "_||_" { self.logical(args) } else { self.overload(id, name, target, args) };
        self.set(id, result.unwrap_or(Type::Error));
    }

    fn logical(&mut self, args: &[ExprId]) -> Option<Type> {
        let mut valid = true;
        for arg in args {
            let found = self.type_of(*arg);
            if !self.solver.assignable(&found, &Type::Bool) {
                self.mismatch(*arg, &Type::Bool, &found);
                valid = false;
            }
        }
        valid.then_some(Type::Bool)
    }

    /// Tries all signatures. The result is the one of the first that applies, or `dyn` if others have another.
    fn overload(&mut self, id: ExprId, name: &str, target: Option<ExprId>, args: &[ExprId]) -> Option<Type> {
        let found: Vec<Type> = target.iter().chain(args).map(|each| self.type_of(*each)).collect();
        let environment: &'a Environment = self.environment;
        let overloads = environment.overloads(name).unwrap_or_default();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == target.is_some()) {
            let parameters: Vec<(Arc<str>, Type)> =
                overload.parameters.iter().map(|name| (Arc::clone(name), self.solver.variable())).collect();
            if overload.arguments.len() != found.len() {
                continue;
            }
            let wanted: Vec<Type> =
                overload.arguments.iter().map(|each| self.solver.instantiate(each, &parameters)).collect();
            if !self.solver.all_assignable(&found, &wanted) {
                continue;
            }
            let of = self.solver.instantiate(&overload.result, &parameters);
            let of = self.solver.substitute(&of);
            result = Some(match result {
                None => of,
                Some(first) if first.is_dyn() || self.solver.exact(&of, &first, 0) => first,
                Some(_) => Type::Dyn,
            });
        }
        if result.is_none() {
            let found: Vec<Type> = found.iter().map(|each| self.solver.resolve(each)).collect();
            let (receiver, arguments) = found.split_at(usize::from(target.is_some()));
            let receiver = receiver.first().map_or_else(String::new, |receiver| format!("{receiver}."));
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let message =
                format!("found no matching overload for '{name}' applied to '{receiver}({})'", arguments.join(", "));
            self.report(self.position(id), message);
        }
        result
    }
}
