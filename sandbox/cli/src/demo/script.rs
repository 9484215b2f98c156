//! The steps of the demo, and the condition that ends each. Pure.

use kcm_sandbox_apiserver::USAGE_CPU;
use serde_json::{Value, json};

use super::snapshot::{Deployment, PodState, Snapshot};

/// The name of the deployment of the demo.
pub(super) const NAME: &str = "web";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// The change that the step makes.
    pub(super) act: Action,
    /// Displayed during the step.
    pub(super) caption: &'static str,
    /// The equivalent kubectl command.
    pub(super) command: &'static str,
    /// Displayed in the summary.
    pub(super) lesson: &'static str,
    until: Until,
}

/// A change that a step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create {
        image: &'static str,
        replicas: u64,
    },
    SetImage(&'static str),
    /// Back to the previous image.
    Undo(&'static str),
    Scale(u64),
    /// Creates an autoscaler with a target of half of the requested CPU.
    Autoscale {
        max: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Every pod is of the newest revision and ready.
    RolledOut,
    /// Pods of the newest revision fail, and the available pods of older revisions stay.
    Stuck,
}

/// The steps of the demo.
pub(super) const STEPS: [Step; 6] = [
    Step {
        act: Action::Create { image: "shop:1.0", replicas: 6 },
        caption: "A deployment of six pods",
        command: "kubectl create deployment web --image=shop:1.0 --replicas=6",
        lesson: "one replica set, six pods, all ready",
        until: Until::RolledOut,
    },
    Step {
        act: Action::SetImage("shop:2.0"),
        caption: "A rolling update: new pods come before old ones go",
        command: "kubectl set image deployment/web shop=shop:2.0",
        lesson: "a second replica set grew as the first one shrank",
        until: Until::RolledOut,
    },
    Step {
        act: Action::SetImage("shop:missing"),
        caption: "A bad image: the rollout stops, and the old pods keep serving",
        command: "kubectl set image deployment/web shop=shop:missing",
        lesson: "pods that cannot start held the rollout up, not the service",
        until: Until::Stuck,
    },
    Step {
        act: Action::Undo("shop:2.0"),
        caption: "A rollback: the template of before becomes the newest again",
        command: "kubectl rollout undo deployment/web",
        lesson: "the old replica set took over again under a new revision",
        until: Until::RolledOut,
    },
    Step {
        act: Action::Scale(10),
        caption: "More of it: ten pods",
        command: "kubectl scale deployment/web --replicas=10",
        lesson: "the replica set that serves grew to ten",
        until: Until::RolledOut,
    },
    Step {
        act: Action::Autoscale { max: 14 },
        caption: "An autoscaler: pods use 80 % of their CPU, and half is the target",
        command: "kubectl autoscale deployment/web --cpu=50% --min=2 --max=14",
        lesson: "the metrics of the pods asked for sixteen, and the autoscaler stopped at fourteen",
        until: Until::RolledOut,
    },
];

impl Step {
    /// Reports whether the cluster has reached the goal of the step.
    pub(super) fn is_over(&self, snapshot: &Snapshot) -> bool {
        let Some(web) = snapshot.deployments.iter().find(|it| it.name == NAME) else { return false };
        match self.until {
            Until::RolledOut => {
                self.is_written(web) && is_rolled_out(web) && snapshot.count(PodState::Terminating) == 0
            }
            Until::Stuck => web.observed && web.sets.len() > 1 && snapshot.count(PodState::Failing) > 0,
        }
    }

    /// Returns `true` if the newest replica set belongs to this step: the status may be older than the change.
    fn is_written(&self, web: &Deployment) -> bool {
        let newest = web.sets.last();
        match self.act {
            Action::Create { image, .. } | Action::SetImage(image) | Action::Undo(image) => {
                newest.is_some_and(|set| set.image == image)
            }
            Action::Scale(replicas) | Action::Autoscale { max: replicas } => web.desired == replicas,
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
                "metadata": { "labels": { "app": NAME }, "annotations": { USAGE_CPU: "80m" } },
                "spec": { "containers": [container(image)] },
            },
        },
    })
}

/// The autoscaler of that deployment.
pub(super) fn autoscaler(max: u64) -> Value {
    let cpu = json!({ "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } });
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": NAME },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": NAME },
            "minReplicas": 2,
            "maxReplicas": max,
            "metrics": [{ "type": "Resource", "resource": cpu }],
        },
    })
}

/// A merge patch that sets the image; it carries the whole container, since a merge patch replaces lists.
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
    use super::super::snapshot::ReplicaSet;
    use super::*;

    fn web(ready: u64, sets: Vec<ReplicaSet>) -> Snapshot {
        let deployment =
            Deployment { name: NAME.to_owned(), desired: 6, ready, updated: 6, total: 6, observed: true, sets };
        Snapshot { deployments: vec![deployment], ..Snapshot::default() }
    }

    fn set(image: &str) -> ReplicaSet {
        ReplicaSet { image: image.to_owned(), desired: 6, ..ReplicaSet::default() }
    }

    #[test]
    fn a_rollout_is_over_when_all_pods_are_updated_and_ready() {
        assert!(STEPS[0].is_over(&web(6, vec![set("shop:1.0")])));
        assert!(!STEPS[0].is_over(&web(5, vec![set("shop:1.0")])));
        assert!(!STEPS[0].is_over(&Snapshot::default()));
    }

    #[test]
    fn a_status_older_than_the_change_ends_nothing() {
        assert!(!STEPS[1].is_over(&web(6, vec![set("shop:1.0")])));
    }

    #[test]
    fn a_bad_image_is_over_when_its_pods_fail() {
        let mut snapshot = web(5, vec![set("shop:2.0"), set("shop:missing")]);
        assert!(!STEPS[2].is_over(&snapshot));
        snapshot.pods.insert(PodState::Failing, 2);
        assert!(STEPS[2].is_over(&snapshot));
    }
}
