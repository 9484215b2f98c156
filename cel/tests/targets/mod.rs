//! Rules that hold for any expression, the bodies of the fuzz targets in `fuzz/`, which `cargo test` calls with seeded
//! mutations.
#![allow(dead_code, unreachable_pub, reason = "each program that includes this uses a part of it")]

use std::sync::LazyLock;

use kcm_cel::{Environment, Position, Type, kubernetes};

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let variables = [
        ("object", Type::Dyn),
        ("request", Type::object("kubernetes.AdmissionRequest")),
        ("authorizer", Type::object("kubernetes.authorization.Authorizer")),
        ("labels", Type::map(Type::String, Type::String)),
        ("names", Type::list(Type::String)),
        ("count", Type::Int),
    ];
    let base = kubernetes::stored_expressions();
    variables.into_iter().fold(base, |environment, (name, of)| environment.with_variable(name, of))
});

/// An expression: it has a type or problems, all positions are in the source, and a second check says the same.
pub fn expressions(source: &str) {
    let lines: Vec<usize> = source.split('\n').map(|line| line.chars().count()).collect();
    let inside = |Position { line, column }| {
        let length = (line as usize).checked_sub(1).and_then(|at| lines.get(at));
        length.is_some_and(|length| column as usize <= *length)
    };
    let again = || ENVIRONMENT.compile(source, &());
    match ENVIRONMENT.compile(source, &()) {
        Ok(checked) => {
            assert!(inside(checked.ast().expr(checked.ast().root()).position));
            assert_eq!(again().map(|again| again.result_type().clone()), Ok(checked.result_type().clone()));
        }
        Err(issues) => {
            assert!(!issues.problems().is_empty());
            assert!(issues.problems().iter().filter_map(|problem| problem.position).all(inside), "{issues}");
            assert_eq!(again().map(|again| again.result_type().clone()), Err(issues));
        }
    }
}

/// A regular expression: it is accepted or refused.
pub fn patterns(source: &str) {
    if !source.contains("'''") && !source.ends_with('\'') {
        let problems = ENVIRONMENT.compile(&format!("names[0].matches(r'''{source}''')"), &());
        let message = problems.err().map(|issues| issues.problems()[0].message.clone());
        assert!(message.is_none_or(|message| message == "invalid matches argument"));
    }
}
