//! The table of API scenarios against the sandbox; the e2e suite plays the same rows against the real API server.
//!
//! `SCENARIO=part-of-a-name cargo test -p kcm-sandbox-conformance --test it` runs only the rows whose name has that part, and
//! reports every failure, also of pending rows.

use kcm_sandbox_apiserver::Sandbox;
use kcm_sandbox_conformance::{self as scenarios, Scenario, Side};

#[tokio::test(start_paused = true)]
async fn the_sandbox_answers_as_the_table_says() {
    let only = std::env::var("SCENARIO").ok();
    let mut failures = Vec::new();
    for scenario in scenarios::all() {
        if only.as_ref().is_some_and(|part| !scenario.name.contains(part)) {
            continue;
        }
        let sandbox = Sandbox::default();
        let outcome = scenarios::run(&scenario, &sandbox.client(), "row", Side::Sandbox).await;
        match outcome {
            Ok(()) if scenario.pending => failures.push(format!("{}\n  holds: take its `pending` away", scenario.name)),
            Err(failure) if only.is_some() || !scenario.pending => failures.push(failure.to_string()),
            Ok(()) | Err(_) => {}
        }
    }
    assert!(failures.is_empty(), "{} rows are not as expected:\n\n{}\n", failures.len(), failures.join("\n\n"));
}

#[test]
fn names_are_unique() {
    let all = scenarios::all().into_iter().chain(scenarios::collected());
    let mut names: Vec<String> = all.map(|Scenario { name, .. }| name).collect();
    names.sort();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn every_difference_says_why() {
    for difference in scenarios::differences() {
        assert!(difference.why.len() > 10, "{difference:?}");
    }
}

#[test]
fn what_is_not_served_is_named_among_the_differences() {
    let known = scenarios::differences();
    for name in kcm_sandbox_apiserver::not_served() {
        let quoted = format!("`{name}`");
        assert!(known.iter().any(|difference| difference.why.contains(&quoted)), "{name} must be named");
    }
}
