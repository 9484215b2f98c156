//! Kinds whose controllers do not run: a newcomer who makes such an object would wait for something to happen.

use kcm_sandbox_apiserver::Resource;

/// Kinds that do nothing by themselves, and the controllers that would do it.
const KINDS: [(&str, Resource); 10] = [
    ("deployment-controller", Resource::namespaced("apps", "v1", "deployments", "Deployment")),
    ("replicaset-controller", Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet")),
    ("statefulset-controller", Resource::namespaced("apps", "v1", "statefulsets", "StatefulSet")),
    ("daemonset-controller", Resource::namespaced("apps", "v1", "daemonsets", "DaemonSet")),
    ("job-controller", Resource::namespaced("batch", "v1", "jobs", "Job")),
    ("cronjob-controller", Resource::namespaced("batch", "v1", "cronjobs", "CronJob")),
    (
        "replicationcontroller-controller",
        Resource::namespaced("", "v1", "replicationcontrollers", "ReplicationController"),
    ),
    (
        "horizontal-pod-autoscaler-controller",
        Resource::namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ),
    ("resourcequota-controller", Resource::namespaced("", "v1", "resourcequotas", "ResourceQuota")),
    (
        "persistentvolume-binder-controller",
        Resource::namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ),
];

/// The kinds that none of these controllers attends to.
pub(super) fn without(controllers: &[String]) -> impl Iterator<Item = Resource> {
    let runs = |name: &str| controllers.iter().any(|controller| controller == name);
    KINDS.into_iter().filter(move |(controller, _)| !runs(controller)).map(|(_, resource)| resource)
}

#[cfg(test)]
mod tests {
    use kcm_controller_manager::UPSTREAM;

    use super::*;

    #[test]
    fn a_kind_is_attended_to_while_its_controller_runs() {
        let controllers = ["deployment-controller", "replicaset-controller"].map(str::to_owned);
        let names: Vec<String> = without(&controllers).map(|resource| resource.plural.to_string()).collect();
        assert_eq!(names.len(), KINDS.len() - 2);
        assert!(names.contains(&"statefulsets".to_owned()) && !names.contains(&"deployments".to_owned()), "{names:?}");
    }

    #[test]
    fn controllers_are_called_as_they_are_called_everywhere() {
        for (controller, _) in KINDS {
            assert!(UPSTREAM.iter().any(|(name, _)| *name == controller), "{controller}");
        }
    }
}
