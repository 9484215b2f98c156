//! The User-Agent of upstream's program.

use kcm_client::UserAgent;
use kcm_config::KUBERNETES_VERSION;

/// The User-Agent of kube-controller-manager of the version that is implemented, to which each identity appends its name.
///
/// Audit logs and the metrics of the API server tell clients apart by it, so it names the version of Kubernetes, as
/// upstream's does.
#[must_use]
pub fn user_agent() -> UserAgent {
    UserAgent::new("kube-controller-manager", &format!("v{KUBERNETES_VERSION}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_the_version_of_kubernetes() {
        let agent = user_agent().of("replicaset-controller");
        assert!(agent.starts_with(&format!("kube-controller-manager/v{KUBERNETES_VERSION} (")), "{agent}");
        assert!(agent.ends_with(" kubernetes/unknown/replicaset-controller"), "{agent}");
    }
}
