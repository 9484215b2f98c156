//! Bodies of watches that are not as they should be: the fuzz target, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;
#[path = "../targets/mod.rs"]
mod targets;

use mutate::mutate;

#[test]
fn no_body_of_a_watch_is_read_in_two_ways_or_makes_the_reader_panic() {
    mutate(&["tests/inputs/watch", "fixtures"], 10_000, targets::watch);
}
