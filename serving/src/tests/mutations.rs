//! Paths, headers and certificates of clients that are not as they should be: the fuzz targets, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;

use mutate::mutate;

use super::targets;

#[test]
fn what_is_percent_decoded_is_text_that_every_encoding_of_it_gives() {
    mutate(&["src/tests/inputs/percent"], 20_000, targets::percent);
}

#[test]
fn no_certificate_makes_the_reader_of_subjects_panic() {
    mutate(&["src/tests/inputs/certificates"], 20_000, targets::certificates);
}
