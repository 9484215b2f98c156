//! Expressions that are not as they should be: the fuzz targets, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;
#[path = "../targets/mod.rs"]
mod targets;

use mutate::mutate;

#[test]
fn checks_or_refuses_any_expression() {
    mutate(&["tests/inputs/expressions"], 5_000, |input| {
        targets::expressions(&String::from_utf8_lossy(input));
    });
}

#[test]
fn accepts_or_refuses_any_pattern() {
    mutate(&["tests/inputs/patterns"], 5_000, |input| targets::patterns(&String::from_utf8_lossy(input)));
}
