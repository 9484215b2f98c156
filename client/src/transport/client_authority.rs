//! The CA of the API server that the kubeconfig holds.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::Kubeconfig;

use super::kubeconfig::current_cluster;

/// The CA of the API server, in PEM, that the kubeconfig of the manager holds as data.
///
/// A host passes it to controllers as an extension of their context.
///
/// # Upstream
/// `CAData` of client-go's `rest.Config`: empty if the kubeconfig names a file, and in a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAuthority(String);

impl ClientAuthority {
    /// The CA with that PEM.
    #[must_use]
    pub fn new(pem: impl Into<String>) -> Self {
        Self(pem.into())
    }

    /// The CA of the current context of the kubeconfig at `path`. `None` if the kubeconfig holds no CA, or cannot be
    /// read, which [`load_config`](super::load_config) reports.
    #[must_use]
    pub fn of_kubeconfig(path: &Path) -> Option<Self> {
        let mut file = Kubeconfig::read_from(path).ok()?;
        let data = current_cluster(&mut file)?.certificate_authority_data.take()?;
        let pem = STANDARD.decode(data).ok().filter(|pem| !pem.is_empty())?;
        Some(Self(String::from_utf8_lossy(&pem).into_owned()))
    }

    /// The certificates in PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_the_data_of_the_current_cluster_and_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let read = |cluster: &str| {
            let text = format!(
                "kind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
                 clusters: [{{name: other, cluster: {{certificate-authority-data: b3RoZXI=}}}}, {{name: k, cluster: {cluster}}}]\n"
            );
            std::fs::write(&path, text).unwrap();
            ClientAuthority::of_kubeconfig(&path)
        };
        let server = "server: \"https://127.0.0.1\"";
        assert_eq!(read(&format!("{{{server}, certificate-authority-data: UEVN}}")), Some(ClientAuthority::new("PEM")));
        assert_eq!(read(&format!("{{{server}, certificate-authority: /ca.crt}}")), None);
        assert_eq!(read(&format!("{{{server}}}")), None);
        assert_eq!(ClientAuthority::of_kubeconfig(Path::new("/nowhere")), None);
    }
}
