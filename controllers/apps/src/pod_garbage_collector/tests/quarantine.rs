//! The quarantine of missing nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_framework::api::InternedStr;
use tokio::time::Instant;

use crate::pod_garbage_collector::quarantine::Quarantine;

/// A round: when, which nodes are missing, and whose quarantine is over.
type Round = (u64, &'static [&'static str], &'static [&'static str]);

#[test]
fn a_node_is_looked_up_after_it_was_missing_for_forty_seconds_without_a_break() {
    let cases: [(&str, &[Round]); 6] = [
        ("just before and at the bound", &[(0, &["a"], &[]), (39, &["a"], &[]), (40, &["a"], &["a"])]),
        ("in the next round after it", &[(0, &["a"], &[]), (35, &["a"], &[]), (55, &["a"], &["a"])]),
        (
            "each node has its own",
            &[(0, &["a"], &[]), (20, &["a", "b"], &[]), (40, &["a", "b"], &["a"]), (60, &["a", "b"], &["b"])],
        ),
        ("one that returned begins anew", &[(0, &["a"], &[]), (20, &[], &[]), (40, &["a"], &[]), (80, &["a"], &["a"])]),
        (
            "one that stays missing is looked up every forty seconds",
            &[(0, &["a"], &[]), (40, &["a"], &["a"]), (60, &["a"], &[]), (80, &["a"], &["a"])],
        ),
        ("no node is missing", &[(0, &[], &[]), (100, &[], &[])]),
    ];
    for (name, rounds) in cases {
        let (start, mut quarantine) = (Instant::now(), Quarantine::default());
        for (at, missing, over) in rounds {
            let missing: BTreeSet<InternedStr> = missing.iter().map(|node| InternedStr::from(*node)).collect();
            let found = quarantine.update(&missing, start + Duration::from_secs(*at));
            assert_eq!(found.iter().map(|node| &**node).collect::<Vec<_>>(), *over, "{name}, at {at} s");
        }
    }
}
