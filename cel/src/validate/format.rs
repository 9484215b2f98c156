//! The arguments of `format` must fit its text.

use super::{Walk, function};
use crate::ast::{Element, ExprId, ExprKind, Literal};
use crate::check::Checked;
use crate::issues::Log;
use crate::types::Type;

pub(super) fn validate(checked: &Checked, walk: &Walk, log: &mut Log) {
    for (id, _) in &walk.order {
        let ExprKind::Call { target: Some(target), args, .. } = &checked.ast.expr(*id).kind else { continue };
        let ([list], Some("format")) = (&args[..], function(checked, *id)) else { continue };
        let ExprKind::Literal(Literal::String(text)) = &checked.ast.expr(*target).kind else { continue };
        let ExprKind::List(elements) = &checked.ast.expr(*list).kind else { continue };
        if let Err((at, message)) = check(checked, text.as_bytes(), elements) {
            log.report(Some(checked.ast.expr(at.unwrap_or(*id)).position), message);
        }
    }
}

/// A problem, with the argument if it concerns one.
type Refused = (Option<ExprId>, String);

/// Reads the clauses. cel-go reads bytes, so a clause of another script is named by its first byte.
fn check(checked: &Checked, text: &[u8], elements: &[Element]) -> Result<(), Refused> {
    let mut used = 0;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(b"%") {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err((None, "unexpected end of string".to_owned()));
        }
        let Some(argument) = elements.get(used) else { return Err((None, format!("index {used} out of range"))) };
        let (clause, after) = clause(rest).map_err(|e| (None, format!("could not parse formatting clause: {e}")))?;
        fits(checked, clause, argument.value)?;
        rest = after;
        used += 1;
    }
    if elements.len() > used {
        let message = format!("too many arguments supplied to string.format (expected {used}, got {})", elements.len());
        return Err((None, message));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clause {
    String,
    Decimal,
    Fixed,
    Scientific,
    Binary,
    Hexadecimal,
    Octal,
}

/// Reads a precision and a letter.
fn clause(text: &[u8]) -> Result<(Clause, &[u8]), String> {
    let mut rest = text;
    if let Some(after) = text.strip_prefix(b".") {
        let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
        rest = &after[digits..];
        precision(&after[..digits], rest.is_empty()).map_err(|e| format!("error while parsing precision: {e}"))?;
    }
    let Some((letter, rest)) = rest.split_first() else {
        return Err("unexpected end of string".to_owned());
    };
    let clause = match letter {
        b's' => Clause::String,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed,
        b'e' => Clause::Scientific,
        b'b' => Clause::Binary,
        b'x' | b'X' => Clause::Hexadecimal,
        b'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{}\"", char::from(*other))),
    };
    Ok((clause, rest))
}

fn precision(digits: &[u8], at_end: bool) -> Result<(), String> {
    if at_end {
        return Err("could not find end of precision specifier".to_owned());
    }
    let digits = String::from_utf8_lossy(digits);
    let reason = match digits.parse::<i64>() {
        Ok(_) => return Ok(()),
        Err(_) if digits.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!("error while converting precision to integer: strconv.Atoi: parsing \"{digits}\": {reason}"))
}

fn fits(checked: &Checked, clause: Clause, argument: ExprId) -> Result<(), Refused> {
    let of = checked.type_of(argument);
    let number = matches!(of.plain(), Type::Int | Type::Uint);
    let (valid, allowed) = match clause {
        Clause::String => {
            if let Some(wrong) = unprintable(checked, argument) {
                let allowed = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
                return Err(refused(checked, allowed, wrong));
            }
            return Ok(());
        }
        Clause::Decimal => (number, "decimal clause can only be used on integers"),
        // Strings may be "NaN" and "Infinity".
        Clause::Fixed => (float(of), "fixed-point clause can only be used on doubles"),
        Clause::Scientific => (float(of), "scientific clause can only be used on doubles"),
        Clause::Binary => (number || *of.plain() == Type::Bool, "only integers and bools can be formatted as binary"),
        Clause::Hexadecimal => (
            number || matches!(of.plain(), Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        Clause::Octal => (number, "octal clause can only be used on integers"),
    };
    if valid || *of == Type::Dyn { Ok(()) } else { Err(refused(checked, allowed, argument)) }
}

fn refused(checked: &Checked, allowed: &str, argument: ExprId) -> Refused {
    let given = checked.type_of(argument).runtime_name();
    (Some(argument), format!("error during formatting: {allowed}, was given {given}"))
}

fn float(of: &Type) -> bool {
    matches!(of.plain(), Type::Double | Type::String)
}

/// Returns the first part of an argument that has no text. Literals of lists and maps are searched.
fn unprintable(checked: &Checked, argument: ExprId) -> Option<ExprId> {
    let printable = match checked.type_of(argument) {
        Type::Dyn
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
        | Type::List(_)
        | Type::Map(..)
        | Type::Type(_) => true,
        Type::Any | Type::Error | Type::Struct(_) | Type::Opaque(..) | Type::Param(_) => false,
    };
    if !printable {
        return Some(argument);
    }
    match &checked.ast.expr(argument).kind {
        ExprKind::List(elements) => elements.iter().find_map(|element| unprintable(checked, element.value)),
        ExprKind::Map(entries) => {
            let mut parts = entries.iter().flat_map(|entry| [entry.key, entry.value]);
            parts.find_map(|part| unprintable(checked, part))
        }
        ExprKind::Literal(_)
        | ExprKind::Ident(_)
        | ExprKind::Select { .. }
        | ExprKind::Has { .. }
        | ExprKind::Call { .. }
        | ExprKind::Struct { .. }
        | ExprKind::Fold(_) => None,
    }
}
