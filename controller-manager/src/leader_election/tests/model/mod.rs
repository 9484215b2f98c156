//! An exhaustive model: two electors and one lease, in every order of steps, responses and losses.
//!
//! `simulation.rs` draws long runs with many candidates. This model visits every state that two candidates can reach with
//! few messages under way, so nothing depends on luck. A candidate may write until the time that the keeper hands to its
//! fence, whatever it does meanwhile. All times are ages, versions are ranks, and values that make no
//! difference are equal: states that differ only by how long the run has lasted are one state, so the search ends.
//!
//! `candidate.rs` has one candidate, `table.rs` its steps by number, and `search.rs` the states of both, each of which is
//! one number of 64 bits.

mod candidate;
mod search;
mod table;

use self::candidate::Mistake;
use self::search::Model;
use self::table::Rates;

// In a debug build three messages take some seconds. Three messages with a deletion or a release, 2.5 million states, hold
// too, in half a minute.

/// Rates that differ by almost the tolerance.
const CLOCKS: Rates = [1000, 1052];

#[track_caller]
fn holds(model: &Model, at_least: usize) {
    let found = model.search();
    assert_eq!((&found.two_writers, &found.nobody_leads), (&None, &None));
    assert!(found.states > at_least, "{} states", found.states);
}

#[test]
fn in_every_state_of_two_candidates_one_may_write_at_most_and_one_leads_soon() {
    holds(&Model::new(CLOCKS, 3, 0), 500_000);
}

#[test]
fn a_deletion_or_a_release_lets_no_two_write() {
    holds(&Model::new(CLOCKS, 1, 1), 150_000);
}

#[test]
fn the_search_finds_mistakes_that_are_planted() {
    for mistake in [Mistake::CreatesAtOnce, Mistake::WaitsFromTheLastVersion, Mistake::ClockStandsStill] {
        let found = Model::new(CLOCKS, 1, 1).with(mistake).search();
        assert!(found.two_writers.is_some(), "{mistake:?}: {found:?}");
    }
}

#[test]
fn the_search_finds_clocks_whose_rates_differ_by_more_than_the_tolerance() {
    let found = Model::new([999, 1053], 1, 0).search();
    assert!(found.two_writers.is_some(), "{found:?}");
}
