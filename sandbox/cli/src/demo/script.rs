//! What the demo plays, and when a step is over. Pure.

use serde_json::{Value, json};

use super::picture::{Deployment, Picture, PodState};

/// The name of the deployment of the demo.
pub(super) const NAME: &str = "web";

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// What is done.
    pub(super) act: Act,
    /// Said while it is played.
    pub(super) caption: &'static str,
    /// What a person would have typed.
    pub(super) command: &'static str,
    /// Said in the summary.
    pub(super) lesson: &'static str,
    until: Until,
}

/// A change that a person makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Create {
        image: &'static str,
        replicas: u64,
    },
    SetImage(&'static str),
    /// Back to the image of before.
    Undo(&'static str),
    Scale(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Every pod is of the newest revision and ready.
    RolledOut,
    /// Pods of the newest revision fail, and as many others as may be relied on stay.
    Stuck,
}

/// The demo.
pub(super) const STEPS: [Step; 5] = [
    Step {
        act: Act::Create { image: "shop:1.0", replicas: 6 },
        caption: "A deployment of six pods",
        command: "kubectl create deployment web --image=shop:1.0 --replicas=6",
        lesson: "one replica set, six pods, all ready",
        until: Until::RolledOut,
    },
    Step {
        act: Act::SetImage("shop:2.0"),
        caption: "A rolling update: new pods come before old ones go",
        command: "kubectl set image deployment/web shop=shop:2.0",
        lesson: "a second replica set grew as the first one shrank",
        until: Until::RolledOut,
    },
    Step {
        act: Act::SetImage("shop:missing"),
        caption: "A bad image: the rollout stops, and the old pods keep serving",
        command: "kubectl set image deployment/web shop=shop:missing",
        lesson: "pods that cannot start held the rollout up, not the service",
        until: Until::Stuck,
    },
    Step {
        act: Act::Undo("shop:2.0"),
        caption: "A rollback: the template of before becomes the newest again",
        command: "kubectl rollout undo deployment/web",
        lesson: "the old replica set took over again under a new revision",
        until: Until::RolledOut,
    },
    Step {
        act: Act::Scale(10),
        caption: "More of it: ten pods",
        command: "kubectl scale deployment/web --replicas=10",
        lesson: "the replica set that serves grew to ten",
        until: Until::RolledOut,
    },
];

impl Step {
    /// Whether the cluster has arrived where the step leads to.
    pub(super) fn is_over(&self, picture: &Picture) -> bool {
        let Some(web) = picture.deployments.iter().find(|it| it.name == NAME) else { return false };
        match self.until {
            Until::RolledOut => self.is_written(web) && is_rolled_out(web) && picture.count(PodState::Terminating) == 0,
            Until::Stuck => web.observed && web.sets.len() > 1 && picture.count(PodState::Failing) > 0,
        }
    }

    /// The newest set is the one that this step asks for: the status may be older than the change.
    fn is_written(&self, web: &Deployment) -> bool {
        let newest = web.sets.last();
        match self.act {
            Act::Create { image, .. } | Act::SetImage(image) | Act::Undo(image) => {
                newest.is_some_and(|set| set.image == image)
            }
            Act::Scale(replicas) => web.desired == replicas,
        }
    }
}

fn is_rolled_out(web: &Deployment) -> bool {
    web.observed && [web.ready, web.updated, web.total].iter().all(|count| *count == web.desired)
}

/// The deployment that the demo creates.
pub(super) fn deployment(image: &str, replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": NAME, "labels": { "app": NAME } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": NAME } },
            "template": {
                "metadata": { "labels": { "app": NAME } },
                "spec": { "containers": [container(image)] },
            },
        },
    })
}

/// A merge patch replaces lists, so it carries the whole container.
pub(super) fn image_patch(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [container(image)] } } } })
}

fn container(image: &str) -> Value {
    json!({
        "name": "shop",
        "image": image,
        "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
    })
}

#[cfg(test)]
mod tests {
    use super::super::picture::ReplicaSet;
    use super::*;

    fn web(ready: u64, sets: Vec<ReplicaSet>) -> Picture {
        let deployment =
            Deployment { name: NAME.to_owned(), desired: 6, ready, updated: 6, total: 6, observed: true, sets };
        Picture { deployments: vec![deployment], ..Picture::default() }
    }

    fn set(image: &str) -> ReplicaSet {
        ReplicaSet { image: image.to_owned(), desired: 6, ..ReplicaSet::default() }
    }

    #[test]
    fn a_rollout_is_over_when_all_pods_are_new_and_ready() {
        assert!(STEPS[0].is_over(&web(6, vec![set("shop:1.0")])));
        assert!(!STEPS[0].is_over(&web(5, vec![set("shop:1.0")])));
        assert!(!STEPS[0].is_over(&Picture::default()));
    }

    #[test]
    fn a_status_from_before_the_change_ends_nothing() {
        assert!(!STEPS[1].is_over(&web(6, vec![set("shop:1.0")])));
    }

    #[test]
    fn a_bad_image_is_over_when_its_pods_fail() {
        let mut picture = web(5, vec![set("shop:2.0"), set("shop:missing")]);
        assert!(!STEPS[2].is_over(&picture));
        picture.pods.insert(PodState::Failing, 2);
        assert!(STEPS[2].is_over(&picture));
    }
}
