//! The plan in words.

use super::fixtures::{DEFAULTS, PodBuilder, ReplicaSetBuilder, build, now, observed, pod, replica_set};
use crate::shared::replicas::plan::plan;

#[test]
fn a_plan_in_words_has_the_counts_that_it_rests_on() {
    let words = |owner: ReplicaSetBuilder, pods: &[PodBuilder]| {
        let (observed, active) = (observed(&owner, pods), build(pods));
        plan(&observed, &active, DEFAULTS, now()).explain("replica set", observed.owner.replicas, active.len())
    };
    let web = |count| replica_set("web").replicas(count);
    let two = [pod("a").ready(60), pod("b")];
    for (words, expected) in [
        (words(web(2), &two), "creates and deletes no pod: 2 are wanted and 2 are active"),
        (words(web(5), &two), "creates 3 pods: 5 are wanted and 2 are active"),
        (words(web(1), &two), "deletes 1 pods: 1 are wanted and 2 are active"),
        (words(web(5).terminating(), &two), "creates and deletes no pod, as the replica set is being deleted"),
        (
            words(web(5).template_labels(serde_json::json!({})), &two),
            "creates no pod, as the template has no labels: 5 are wanted and 2 are active",
        ),
    ] {
        assert_eq!(words, expected);
    }
}
