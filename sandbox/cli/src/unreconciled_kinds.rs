//! Kinds whose controllers do not run: clients that create such an object get a warning that nothing reconciles it.

use kcm_sandbox_apiserver::Resource;

/// Controllers and the kinds that they reconcile.
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

/// Returns the kinds that none of these controllers reconciles.
pub(super) fn without(controllers: &[String]) -> impl Iterator<Item = Resource> {
    let runs = |name: &str| controllers.iter().any(|controller| controller == name);
    KINDS.into_iter().filter(move |(controller, _)| !runs(controller)).map(|(_, resource)| resource)
}

#[cfg(test)]
mod tests {
    use kcm_controller_manager::UPSTREAM;

    use super::*;

    #[test]
    fn a_kind_is_reconciled_while_its_controller_runs() {
        let controllers = ["deployment-controller", "replicaset-controller"].map(str::to_owned);
        let names: Vec<String> = without(&controllers).map(|resource| resource.plural.to_string()).collect();
        assert_eq!(names.len(), KINDS.len() - 2);
        assert!(names.contains(&"statefulsets".to_owned()) && !names.contains(&"deployments".to_owned()), "{names:?}");
    }

    #[test]
    fn controller_names_equal_upstream() {
        for (controller, _) in KINDS {
            assert!(UPSTREAM.iter().any(|known| known.name == controller), "{controller}");
        }
    }
}
