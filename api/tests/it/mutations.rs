//! Bytes from the network that are not as they should be: the fuzz targets, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;
#[path = "../targets/mod.rs"]
mod targets;

use mutate::mutate;

#[test]
fn no_object_makes_a_view_panic_or_grow_beyond_its_length() {
    mutate(&["tests/inputs/views", "fixtures"], 3_000, targets::views);
}

#[test]
fn no_document_makes_an_edit_change_something_else() {
    mutate(&["tests/inputs/documents", "fixtures"], 5_000, targets::documents);
}

#[test]
fn no_text_makes_a_label_selector_that_reads_as_another() {
    mutate(&["tests/inputs/selectors"], 20_000, targets::selectors);
}
