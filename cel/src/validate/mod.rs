//! Checks of literals, after the check of types has found nothing.

mod format;
mod homogeneous;
mod regex;
mod time;

use crate::ast::{Ast, ExprId, ExprKind, Literal};
use crate::check::Checked;
use crate::issues::Log;
use crate::validator::Validator;

pub(crate) fn validate(checked: &Checked, validators: &[Validator], log: &mut Log) {
    if validators.is_empty() {
        return;
    }
    let walk = Walk::new(checked, validators.contains(&Validator::Format));
    for validator in validators {
        match validator {
            Validator::Durations => arguments(checked, &walk, "duration", time::is_duration_literal, log),
            Validator::Timestamps => arguments(checked, &walk, "timestamp", time::is_timestamp_literal, log),
            Validator::RegularExpressions => arguments(checked, &walk, "matches", regex::is_literal, log),
            Validator::Homogeneous => homogeneous::validate(checked, &walk, log),
            Validator::Format => format::validate(checked, &walk, log),
        }
    }
}

/// The nodes of a tree, children before parents.
struct Walk {
    /// Each node, and whether it is inside of a call of `format`.
    order: Vec<(ExprId, bool)>,
}

impl Walk {
    fn new(checked: &Checked, exempt_format: bool) -> Self {
        let mut order = Vec::new();
        let mut open = vec![(checked.ast.root(), false)];
        // Parents before children and the last child first, which is turned round below.
        while let Some((id, exempt)) = open.pop() {
            order.push((id, exempt));
            let inside = exempt || (exempt_format && function(checked, id) == Some("format"));
            children(checked, id, |child| open.push((child, inside)));
        }
        order.reverse();
        Self { order }
    }
}

/// Calls `visit` for each child, in the order of the source.
fn children(checked: &Checked, id: ExprId, mut visit: impl FnMut(ExprId)) {
    match &checked.ast.expr(id).kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } | ExprKind::Has { operand, .. } => visit(*operand),
        ExprKind::Call { target, args, .. } => target.iter().chain(args).copied().for_each(visit),
        ExprKind::List(elements) => elements.iter().for_each(|element| visit(element.value)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            visit(entry.key);
            visit(entry.value);
        }),
        ExprKind::Struct { fields, .. } => fields.iter().for_each(|field| visit(field.value)),
        ExprKind::Fold(fold) => Ast::fold_children(fold).into_iter().for_each(visit),
    }
}

/// Returns the name of the function that a call calls.
fn function(checked: &Checked, id: ExprId) -> Option<&str> {
    let ExprKind::Call { function, .. } = &checked.ast.expr(id).kind else { return None };
    Some(checked.functions.get(&id).unwrap_or(function))
}

fn arguments(checked: &Checked, walk: &Walk, name: &str, valid: fn(&Literal) -> bool, log: &mut Log) {
    for (id, _) in &walk.order {
        if function(checked, *id) != Some(name) {
            continue;
        }
        let ExprKind::Call { args, .. } = &checked.ast.expr(*id).kind else { continue };
        let Some(first) = args.first().map(|first| checked.ast.expr(*first)) else { continue };
        if let ExprKind::Literal(literal) = &first.kind
            && !valid(literal)
        {
            log.report(Some(first.position), format!("invalid {name} argument"));
        }
    }
}
