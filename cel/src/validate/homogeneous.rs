//! Literals of lists and maps must not mix types.

use super::Walk;
use crate::ast::{ExprId, ExprKind};
use crate::check::Checked;
use crate::issues::Log;
use crate::types::Type;

pub(super) fn validate(checked: &Checked, walk: &Walk, log: &mut Log) {
    let literals = || walk.order.iter().filter(|(_, exempt)| !exempt).map(|(id, _)| &checked.ast.expr(*id).kind);
    let mut mismatch = |at: ExprId, expected: &Type, found: &Type| {
        let position = checked.ast.expr(at).position;
        log.report(Some(position), format!("expected type '{expected}' but found '{found}'"));
    };
    for kind in literals() {
        let ExprKind::List(elements) = kind else { continue };
        let mut types =
            elements.iter().map(|element| (element.value, content(checked, element.value, element.optional)));
        let Some((_, expected)) = types.next() else { continue };
        if let Some((at, found)) = types.find(|(_, found)| !same(expected, found)) {
            mismatch(at, expected, found);
        }
    }
    for kind in literals() {
        let ExprKind::Map(entries) = kind else { continue };
        let Some((first, rest)) = entries.split_first() else { continue };
        let (key, value) = (checked.type_of(first.key), content(checked, first.value, first.optional));
        for entry in rest {
            let (found_key, found_value) = (checked.type_of(entry.key), content(checked, entry.value, entry.optional));
            if !same(key, found_key) {
                mismatch(entry.key, key, found_key);
            }
            if !same(value, found_value) {
                mismatch(entry.value, value, found_value);
            }
        }
    }
}

/// Returns the type of a value without the optional around it. A `dyn` stays.
fn content(checked: &Checked, id: ExprId, optional: bool) -> &Type {
    let of = checked.type_of(id);
    if optional { of.content().unwrap_or(of) } else { of }
}

/// Returns `true` if two types are the same. Wrappers are the same as what they wrap.
fn same(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::List(one), Type::List(other)) | (Type::Type(Some(one)), Type::Type(Some(other))) => same(one, other),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => same(key, other_key) && same(value, other_value),
        (Type::Opaque(name, one), Type::Opaque(other_name, other)) => {
            name == other_name
                && one.len() == other.len()
                && one.iter().zip(other.iter()).all(|(one, other)| same(one, other))
        }
        (one, other) => one.plain() == other.plain(),
    }
}
