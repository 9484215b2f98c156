//! Plans in words.

use serde_json::json;

use super::fixtures::{Claims, GATES, Is, planned, pod, set};

#[test]
fn a_plan_in_words_has_its_counts_and_what_it_waits_for() {
    let parallel = || json!({ "spec": { "podManagementPolicy": "Parallel" } });
    for (changes, pods, expected) in [
        (json!({}), vec![Is::Ready, Is::Ready, Is::Ready], "changes no pod"),
        (json!({}), vec![], "creates 1 pods: web-0 has to become available before the next pod"),
        (parallel(), vec![Is::Failed], "creates 2 pods, deletes 1 pods that have ended: web-0 is being deleted"),
        (json!({}), vec![Is::Unready], "changes no pod: web-0 does not run or is not ready"),
        (
            json!({}),
            vec![Is::Old, Is::Old, Is::Old],
            "deletes 1 pods of an earlier revision: web-2 has to end before the next pod",
        ),
        (json!({}), vec![Is::Ready; 4], "deletes 1 surplus pods: web-3 has to end before the next pod"),
        (
            json!({ "metadata": { "deletionTimestamp": "2026-01-02T11:00:00Z" } }),
            vec![],
            "changes no pod: the stateful set is being deleted",
        ),
    ] {
        let pods: Vec<_> = (0..).zip(pods).map(|(ordinal, is)| pod(ordinal, is)).collect();
        assert_eq!(planned(&set(changes), &pods, &Claims::default(), GATES).explain(), expected);
    }
}
