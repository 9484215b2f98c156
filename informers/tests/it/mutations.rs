//! Bodies of watches that are not as they should be: the fuzz target, run with seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;
#[path = "../targets/mod.rs"]
mod targets;

use mutate::mutate;

#[test]
fn no_body_of_a_watch_is_read_in_two_ways_or_makes_the_reader_panic() {
    let seeds: [&[u8]; 4] = [
        include_bytes!("../../fixtures/pods_watch.pb"),
        include_bytes!("../../fixtures/pods_expired.pb"),
        b"\x05{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}}\r\n{\"object\":{\"kind\":\"Status\",\"code\":410},\"type\":\"ERROR\"}\n\n",
        b"\x02\0\0\0\x09\x0a\x05ADDED\x12\0\xff\xff\xff\xff",
    ];
    mutate(&seeds, 10_000, targets::watch);
}
