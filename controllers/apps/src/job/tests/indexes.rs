//! Sets of indexes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::job::indexes::Indexes;

#[test]
fn a_status_is_read_up_to_the_completions_and_without_what_is_malformed() {
    for (name, text, completions, expected) in [
        ("empty", "", 5, ""),
        ("one", "3", 5, "3"),
        ("two neighbours are no interval", "0,1", 5, "0,1"),
        ("an interval of two", "0-1", 5, "0,1"),
        ("an interval", "0-2,4", 5, "0-2,4"),
        ("neighbours become an interval", "0-2,3,4-5", 9, "0-5"),
        ("cut at the completions", "0-8", 5, "0-4"),
        ("beyond the completions", "1,5-7", 5, "1"),
        ("malformed parts are left out", "a,1,2-b,4", 9, "1,4"),
        ("negative", "-1,2", 9, "2"),
        ("backwards", "5-2,7", 9, "7"),
        ("unordered and overlapping", "6,1-4,3-5", 9, "1-6"),
        ("no completions", "0", 0, ""),
        ("too large", "99999999999,1", 9, "1"),
    ] {
        assert_eq!(Indexes::parse(text, completions).to_string(), expected, "{name}");
    }
}

#[test]
fn the_first_missing_indexes_are_found() {
    for (name, taken, count, completions, expected) in [
        ("none is taken", "", 3, 5, vec![0, 1, 2]),
        ("gaps first", "1,3", 3, 6, vec![0, 2, 4]),
        ("no more than there are", "0-2", 9, 5, vec![3, 4]),
        ("all are taken", "0-4", 2, 5, vec![]),
        ("none is asked for", "1", 0, 5, vec![]),
        ("an index beyond the completions", "0,7", 9, 3, vec![1, 2]),
    ] {
        assert_eq!(Indexes::parse(taken, 100).first_missing(count, completions), expected, "{name}");
    }
}

fn indexes() -> impl Strategy<Value = BTreeSet<i32>> {
    prop::collection::btree_set(0..60, 0..40)
}

fn set_of(indexes: &BTreeSet<i32>) -> Indexes {
    indexes.iter().copied().collect()
}

proptest! {
    #[test]
    fn a_set_is_the_set_of_its_indexes(a in indexes(), b in indexes(), count in 0_usize..20) {
        let (ours, theirs) = (set_of(&a), set_of(&b));
        prop_assert_eq!(Indexes::parse(&ours.to_string(), 60), ours.clone());
        prop_assert_eq!(ours.union(&theirs), set_of(&a.union(&b).copied().collect()));
        prop_assert_eq!(usize::try_from(ours.count_common(&theirs)).unwrap(), a.intersection(&b).count());
        prop_assert_eq!(usize::try_from(ours.total()).unwrap(), a.len());
        prop_assert_eq!(ours.is_empty(), a.is_empty());
        for index in 0..60 {
            prop_assert_eq!(ours.contains(index), a.contains(&index));
        }
        let missing: Vec<i32> = (0..50).filter(|index| !a.contains(index)).take(count).collect();
        prop_assert_eq!(ours.first_missing(count, 50), missing);
    }

    #[test]
    fn no_text_is_too_odd_to_be_read(text in ".*", completions in any::<i32>()) {
        let read = Indexes::parse(&text, completions);
        prop_assert_eq!(Indexes::parse(&read.to_string(), completions), read);
    }
}
