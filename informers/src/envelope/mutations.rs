//! Bodies of responses that are not as they should be: the fuzz target, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;

use mutate::mutate;

use super::targets;

#[test]
fn no_body_makes_a_page_bookmark_or_status_panic_or_grow_beyond_its_length() {
    mutate(&["tests/inputs/envelopes", "fixtures"], 20_000, targets::envelopes);
}
