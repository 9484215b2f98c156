//! The plan in words.

use super::fixtures::{DEFAULTS, DeploymentBuilder, ReplicaSetBuilder, build, deployment, now, set};
use crate::deployment::observe::Observed;
use crate::deployment::plan::plan;

fn words(owner: &DeploymentBuilder, sets: &[ReplicaSetBuilder]) -> String {
    let observed = Observed { deployment: owner.build(), replica_sets: build(sets), pods: vec![] };
    let replicas = observed.deployment.replicas;
    plan(&observed, build(sets), DEFAULTS, now()).unwrap().explain(replicas)
}

#[test]
fn a_plan_in_words_says_what_is_done_and_why() {
    let web = deployment("web").replicas(4).rolling(1, 0);
    let new = set("new").scaled_to(4, 4).revision("2").sizes(4, 5).created(10);
    let old = set("old").image("image:0").scaled_to(4, 4).revision("1").sizes(4, 5).created(100);
    for (name, words, expected) in [
        (
            "a rollout begins",
            words(&web, std::slice::from_ref(&old)),
            "rolls out by the strategy RollingUpdate (4 wanted, 4 exist, 0 of the new template, 4 available): \
             creates replica set web-HASH with 1 replicas, as none has the template",
        ),
        (
            "a rollout waits for its first pod",
            words(&web, &[set("new").scaled_to(1, 0).revision("2").sizes(4, 5).created(10), old.clone()]),
            "rolls out by the strategy RollingUpdate (4 wanted, 5 exist, 1 of the new template, 4 available): \
             no replica set changes",
        ),
        (
            "a rollout replaces an old pod",
            words(&web, &[set("new").scaled_to(1, 1).revision("2").sizes(4, 5).created(10), old]),
            "rolls out by the strategy RollingUpdate (4 wanted, 5 exist, 1 of the new template, 5 available): \
             scales replica set old from 4 to 3, as more pods are available than maxUnavailable requires",
        ),
        (
            "a deployment that is scaled",
            words(&web.clone().replicas(6), std::slice::from_ref(&new)),
            "scales, as spec.replicas changed since the replica sets were scaled (6 wanted, 4 exist, 4 of the new \
             template, 4 available): scales replica set new from 4 to 6, as it is the only replica set with replicas",
        ),
        (
            "a deployment that is being deleted",
            words(&web.terminating(), &[new]),
            "updates the status only, as the deployment is being deleted (4 wanted, 4 exist, 4 of the new template, \
             4 available): no replica set changes",
        ),
    ] {
        let words = words.split(' ').map(|word| if word.starts_with("web-") { "web-HASH" } else { word });
        assert_eq!(words.collect::<Vec<_>>().join(" "), expected, "{name}");
    }
}
