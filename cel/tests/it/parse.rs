//! The parser beside cel-go's, and its bounds.

use std::fmt::Write;

use kcm_cel::{Ast, ExprId, ExprKind, Literal, MAX_CODE_POINTS, Position, parse};
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        write!(text, "{b:02x}").expect("a string must take text");
        text
    })
}

fn at(position: Position) -> String {
    format!("@{}:{}", position.line, position.column)
}

fn dump(ast: &Ast, id: ExprId) -> String {
    let expr = ast.expr(id);
    let mark = |optional: bool| if optional { "?" } else { "" };
    let text = match &expr.kind {
        ExprKind::Literal(Literal::Null) => "null".to_owned(),
        ExprKind::Literal(Literal::Bool(b)) => format!("bool:{b}"),
        ExprKind::Literal(Literal::Int(i)) => format!("int:{i}"),
        ExprKind::Literal(Literal::Uint(u)) => format!("uint:{u}"),
        ExprKind::Literal(Literal::Double(d)) => format!("double:{:016x}", d.to_bits()),
        ExprKind::Literal(Literal::String(s)) => format!("string:{}", hex(s.as_bytes())),
        ExprKind::Literal(Literal::Bytes(b)) => format!("bytes:{}", hex(b)),
        ExprKind::Ident(name) => format!("ident:{name}"),
        ExprKind::Select { operand, field } => format!("(select {} {field})", dump(ast, *operand)),
        ExprKind::Has { operand, field } => format!("(has {} {field})", dump(ast, *operand)),
        ExprKind::Fold(fold) => {
            let parts = [fold.range, fold.initial, fold.condition, fold.step, fold.result].map(|id| dump(ast, id));
            let second = fold.second.as_deref().unwrap_or("_");
            format!("(fold {} {second} {} {})", fold.variable, fold.accumulator, parts.join(" "))
        }
        ExprKind::Call { target, function, args } => {
            let mut text = match target {
                Some(target) => format!("(member {function} {}", dump(ast, *target)),
                None => format!("(call {function}"),
            };
            for arg in args {
                text.push(' ');
                text.push_str(&dump(ast, *arg));
            }
            text + ")"
        }
        ExprKind::List(elements) => {
            let list = elements.iter().map(|e| format!(" {}{}", mark(e.optional), dump(ast, e.value)));
            format!("(list{})", list.collect::<String>())
        }
        ExprKind::Map(entries) => {
            let list = entries.iter().map(|e| {
                let (key, value) = (dump(ast, e.key), dump(ast, e.value));
                format!(" {}({key} {value}){}", mark(e.optional), at(e.position))
            });
            format!("(map{})", list.collect::<String>())
        }
        ExprKind::Struct { name, fields } => {
            let list = fields
                .iter()
                .map(|f| format!(" {}({} {}){}", mark(f.optional), f.name, dump(ast, f.value), at(f.position)));
            format!("(struct {name}{})", list.collect::<String>())
        }
    };
    text + &at(expr.position)
}

fn outcome(source: &str) -> String {
    match parse(source) {
        Ok(ast) => dump(&ast, ast.root()),
        Err(problems) => {
            let message = &problems[0].message;
            let message = if message.starts_with("Syntax error: ") { "Syntax error" } else { message };
            format!("error{} {message}", problems[0].position.map_or_else(String::new, at))
        }
    }
}

fn corpus() -> Vec<(String, String)> {
    let rows = include_str!("../data/parse.jsonl").lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).expect("the corpus must be well formed");
        (
            row["expression"].as_str().expect("the corpus must be well formed").to_owned(),
            row["expected"].as_str().expect("the corpus must be well formed").to_owned(),
        )
    });
    rows.collect()
}

#[test]
fn parses_as_cel_go_does() {
    let wrong: Vec<_> = corpus()
        .into_iter()
        // cel-go reports column -1 for the empty source, which is no position.
        .filter(|(source, _)| !source.is_empty())
        .filter(|(source, expected)| outcome(source) != *expected)
        .map(|(source, expected)| format!("{source:?}\n  cel-go {expected}\n  here   {}", outcome(&source)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn refuses_deep_and_long_sources_without_overflowing_the_stack() {
    let n = MAX_CODE_POINTS / 2;
    for source in [
        "(".repeat(n),
        "[".repeat(n),
        "{1:".repeat(n / 2),
        "a?a:".repeat(n / 4),
        "f(".repeat(n),
        "a[".repeat(n),
        format!("a{}", ".b".repeat(n - 1)),
        format!("a{}", "+a".repeat(n - 1)),
        "a".repeat(MAX_CODE_POINTS + 1),
    ] {
        assert!(parse(&source).is_err(), "{}", &source[..10]);
    }
    assert!(parse(&"!".repeat(MAX_CODE_POINTS)).is_err());
    assert!(parse(&format!("a{}", "&&a".repeat(30_000))).is_ok(), "a balanced chain is shallow");
    assert!(parse(&format!("{}a", "!".repeat(MAX_CODE_POINTS - 1))).is_ok());
}

proptest! {
    #[test]
    fn never_panics(source in any::<String>()) {
        let _ = outcome(&source);
    }

    #[test]
    fn never_panics_on_changed_expressions(row in 0usize..10_000, at in 0usize..100, put in "[-!?.:,(){}\\[\\]'\"\\\\a1 ]{0,3}") {
        let rows = corpus();
        let mut chars: Vec<char> = rows[row % rows.len()].0.chars().collect();
        let at = at % (chars.len() + 1);
        let end = (at + 1).min(chars.len());
        chars.splice(at..end, put.chars());
        let _ = outcome(&chars.into_iter().collect::<String>());
    }
}
