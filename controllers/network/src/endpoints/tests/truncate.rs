//! Truncation.

use super::super::truncate::truncate;
use crate::shared::subsets::{Address, Subset};

/// A subset with so many ready addresses, and so many that are not ready.
fn subset((ready, not_ready): (usize, usize)) -> Subset {
    let addresses =
        |count| (0..count).map(|number| Address { ip: format!("{number}"), ..Address::default() }).collect();
    Subset { addresses: addresses(ready), not_ready_addresses: addresses(not_ready), ports: Vec::new() }
}

#[test]
fn a_thousand_addresses_are_kept_ready_ones_first() {
    for (name, before, after) in [
        ("nothing", vec![], None),
        ("as many as fit", vec![(600, 400)], None),
        ("as many as fit, in two subsets", vec![(600, 0), (0, 400)], None),
        ("one too many", vec![(1001, 0)], Some(vec![(1000, 0)])),
        ("some that are not ready", vec![(600, 600)], Some(vec![(600, 400)])),
        ("all that are not ready", vec![(1000, 5)], Some(vec![(1000, 0)])),
        ("all that are not ready, and some ready ones", vec![(1100, 50)], Some(vec![(1000, 0)])),
        ("ready ones in equal shares", vec![(500, 0), (500, 0), (500, 0)], Some(vec![(334, 0), (334, 0), (332, 0)])),
        ("ready ones in proportion", vec![(100, 7), (1000, 0)], Some(vec![(91, 0), (909, 0)])),
        ("others in proportion", vec![(400, 300), (0, 700)], Some(vec![(400, 180), (0, 420)])),
        ("nothing is left for the last", vec![(999, 1), (0, 1)], Some(vec![(999, 1), (0, 0)])),
    ] {
        let full: Vec<Subset> = before.iter().copied().map(subset).collect();
        let mut subsets = full.clone();
        assert_eq!(truncate(&mut subsets), after.is_some(), "{name}");
        let expected: Vec<Subset> = after.unwrap_or(before).into_iter().map(subset).collect();
        assert_eq!(subsets, expected, "{name}");
    }
}
