//! Clean-up of old replica sets.

use jiff::Timestamp;

use super::counts::set;
use crate::deployment::rollout::SetCount;
use crate::deployment::rollout::cleanup::plan;

struct Case {
    name: &'static str,
    old: Vec<SetCount<'static>>,
    limit: Option<i32>,
    deleted: &'static [usize],
}

/// An old set without replicas, of this revision.
fn old(index: usize, revision: i64) -> SetCount<'static> {
    SetCount { revision, ..set(index, 0) }
}

#[test]
fn the_latest_revisions_are_kept() {
    let plain = || vec![old(0, 1), old(1, 2), old(2, 3)];
    for Case { name, old, limit, deleted } in [
        Case { name: "no limit", old: plain(), limit: None, deleted: &[] },
        Case { name: "the largest number is no limit", old: plain(), limit: Some(i32::MAX), deleted: &[] },
        Case { name: "more than there are", old: plain(), limit: Some(4), deleted: &[] },
        Case { name: "as many as there are", old: plain(), limit: Some(3), deleted: &[] },
        Case { name: "one too many", old: plain(), limit: Some(2), deleted: &[0] },
        Case { name: "all but one", old: plain(), limit: Some(1), deleted: &[0, 1] },
        Case { name: "none is kept", old: plain(), limit: Some(0), deleted: &[0, 1, 2] },
        Case { name: "less than none", old: plain(), limit: Some(-1), deleted: &[0, 1, 2] },
        Case { name: "none there", old: vec![], limit: Some(0), deleted: &[] },
        Case {
            name: "by revision before age",
            old: vec![old(0, 3), old(1, 1), old(2, 4), old(3, 2)],
            limit: Some(2),
            deleted: &[1, 3],
        },
        Case { name: "revisions are numbers", old: vec![old(0, 10), old(1, 9)], limit: Some(1), deleted: &[1] },
        Case { name: "no revision before any", old: vec![old(0, 1), old(1, 0)], limit: Some(1), deleted: &[1] },
        Case {
            name: "by age where revisions are equal",
            old: vec![old(1, 2), old(0, 2)],
            limit: Some(1),
            deleted: &[0],
        },
        Case {
            name: "by name where ages are equal",
            old: vec![
                SetCount { name: "b", created: Some(Timestamp::UNIX_EPOCH), ..old(0, 1) },
                SetCount { name: "a", created: Some(Timestamp::UNIX_EPOCH), ..old(1, 1) },
            ],
            limit: Some(1),
            deleted: &[1],
        },
        Case {
            name: "of no known age before any",
            old: vec![old(0, 1), SetCount { created: None, ..old(1, 1) }],
            limit: Some(1),
            deleted: &[1],
        },
        Case {
            name: "only those without replicas",
            old: vec![SetCount { actual: 1, ..old(0, 1) }, SetCount { desired: 1, ..old(1, 2) }, set(2, 1), old(3, 4)],
            limit: Some(0),
            deleted: &[3],
        },
        Case {
            name: "one with a stale status is not deleted",
            old: vec![SetCount { observed: false, ..old(0, 1) }, old(1, 2)],
            limit: Some(0),
            deleted: &[1],
        },
        Case {
            name: "one with replicas counts as surplus",
            old: vec![set(0, 1), old(1, 2), old(2, 3)],
            limit: Some(1),
            deleted: &[1],
        },
        Case {
            name: "all of the surplus has replicas",
            old: vec![set(0, 1), set(1, 1), old(2, 3)],
            limit: Some(1),
            deleted: &[],
        },
        Case {
            name: "a terminating one does not count",
            old: vec![SetCount { terminating: true, ..old(0, 1) }, old(1, 2), old(2, 3)],
            limit: Some(2),
            deleted: &[],
        },
        Case {
            name: "a terminating one is not deleted again",
            old: vec![SetCount { terminating: true, ..old(0, 1) }],
            limit: Some(0),
            deleted: &[],
        },
    ] {
        assert_eq!(plan(&old, limit), deleted, "{name}");
    }
}
