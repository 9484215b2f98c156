//! The object to explain.

use kcm_framework::explain::QueueStatus;

/// Short names of kubectl, with the resources of controllers.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("cj", "cronjobs"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("ep", "endpoints"),
    ("hpa", "horizontalpodautoscalers"),
    ("no", "nodes"),
    ("ns", "namespaces"),
    ("pdb", "poddisruptionbudgets"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rc", "replicationcontrollers"),
    ("rs", "replicasets"),
    ("sa", "serviceaccounts"),
    ("sts", "statefulsets"),
    ("svc", "services"),
];

/// The object to explain, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// A kind, a resource, or a short name.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Target {
    /// The target of `RESOURCE/NAME` or `RESOURCE NAME`.
    pub(super) fn parse(operands: &[&str], namespace: &str) -> Option<Self> {
        let (resource, name) = match operands {
            [operand] => operand.split_once('/')?,
            [resource, name] => (*resource, *name),
            _other => return None,
        };
        let is_named = !resource.is_empty() && !name.is_empty() && !name.contains('/');
        let (resource, namespace, name) = (resource.to_ascii_lowercase(), namespace.to_owned(), name.to_owned());
        is_named.then_some(Self { resource, namespace, name })
    }

    /// Returns `true` if the keys of a queue name objects of the resource.
    pub(super) fn is_of(&self, queue: &QueueStatus) -> bool {
        queue.resource.as_ref().is_some_and(|resource| self.names(resource, queue.kind.as_deref()))
    }

    /// Returns `true` if the name means this resource: its kind, its plural with or without group, or its short name.
    pub(super) fn names(&self, resource: &str, kind: Option<&str>) -> bool {
        let plural = resource.split_once('.').map_or(resource, |(plural, _)| plural);
        let short = SHORT_NAMES.iter().find(|(short, _)| *short == self.resource).map(|(_, plural)| *plural);
        [resource, plural].contains(&short.unwrap_or(&self.resource))
            || kind.is_some_and(|kind| kind.to_ascii_lowercase() == self.resource)
    }

    /// The paths of the key in a controller: with its namespace, and of a cluster-scoped object.
    pub(super) fn path(&self, controller: &str, is_namespaced: bool) -> String {
        let namespace = if is_namespaced { format!("{}/", self.namespace) } else { String::new() };
        format!("/debug/controllers/{controller}/keys/{namespace}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(resource: &str) -> Target {
        Target::parse(&[resource, "web"], "shop").expect("it names an object")
    }

    fn queue() -> QueueStatus {
        serde_json::from_value(serde_json::json!({ "resource": "deployments.apps", "kind": "Deployment" }))
            .expect("it is the status of a queue")
    }

    #[test]
    fn an_object_is_named_as_for_kubectl() {
        let web = Target { resource: "deployment".to_owned(), namespace: "shop".to_owned(), name: "web".to_owned() };
        assert_eq!(Target::parse(&["Deployment/web"], "shop"), Some(web.clone()));
        assert_eq!(Target::parse(&["deployment", "web"], "shop"), Some(web.clone()));
        for wrong in [&["web"][..], &[], &["deployment/"], &["a/b/c"], &["a", "b", "c"]] {
            assert_eq!(Target::parse(wrong, "shop"), None, "{wrong:?}");
        }
        assert_eq!(web.path("c", true), "/debug/controllers/c/keys/shop/web");
        assert_eq!(web.path("c", false), "/debug/controllers/c/keys/web");
    }

    #[test]
    fn a_resource_is_known_by_its_kind_its_plural_and_its_short_name() {
        for resource in ["deployment", "Deployment", "deployments", "deployments.apps", "deploy"] {
            assert!(target(resource).is_of(&queue()), "{resource}");
        }
        for resource in ["replicaset", "deployments.example.com", "rs", "apps"] {
            assert!(!target(resource).is_of(&queue()), "{resource}");
        }
        assert!(!target("deployment").is_of(&QueueStatus::default()), "its keys are no objects");
    }
}
