//! The kubeconfig file of a sandbox.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kcm_sandbox_listener::Listener;
use kube::config::Kubeconfig;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeout for a sandbox of this machine to accept a connection.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The kubeconfig file of this sandbox; dropping this removes it, since it is useless without its sandbox.
pub(super) struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// Writes the kubeconfig for a listener.
    ///
    /// # Errors
    /// A sentence, if the file belongs to a running sandbox, is no sandbox kubeconfig, or cannot be written.
    pub(super) async fn write(listener: &Listener, path: &Path) -> Result<Self, String> {
        if let Some(server) = running(path).await {
            return Err(format!(
                "{} belongs to a sandbox that runs at {server}: end it, or give this one files of its own with \
                 --socket=PATH and --write-kubeconfig=PATH",
                path.display()
            ));
        }
        listener.write_kubeconfig(path).map_err(|error| kcm_framework::error_chain(&error))?;
        Ok(Self { path: path.to_owned(), text: listener.kubeconfig() })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Another sandbox or the user may have replaced it.
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // Not found is success.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Returns the server address in a sandbox kubeconfig if that server accepts connections.
async fn running(path: &Path) -> Option<SocketAddr> {
    let server = server(&Kubeconfig::read_from(path).ok()?)?;
    timeout(TIMEOUT, TcpStream::connect(server)).await.ok()?.ok()?;
    Some(server)
}

/// Returns the server address of a sandbox kubeconfig; `None` for any other kubeconfig, so that no foreign server is
/// contacted.
fn server(config: &Kubeconfig) -> Option<SocketAddr> {
    let [named] = &config.clusters[..] else { return None };
    let server = named.cluster.as_ref()?.server.as_deref().filter(|_| named.name == "sandbox")?;
    server.strip_prefix("https://")?.trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use kcm_sandbox_apiserver::Sandbox;
    use kcm_sandbox_listener::ListenOptions;

    use super::*;

    async fn listener() -> Listener {
        Listener::bind(&Sandbox::default(), ListenOptions::default()).await.expect("a port must be free")
    }

    #[tokio::test]
    async fn the_file_is_removed_on_drop_unless_another_sandbox_replaced_it() {
        let folder = tempfile::tempdir().expect("there must be room for a folder");
        let path = folder.path().join("kubeconfig");
        let first = listener().await;
        let file = File::write(&first, &path).await.expect("the place is free");
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());

        let file = File::write(&first, &path).await.expect("the place is free");
        let second = listener().await;
        second.write_kubeconfig(&path).expect("it is a sandbox's");
        drop(file);
        assert_eq!(fs::read_to_string(&path).expect("it is there"), second.kubeconfig());
    }

    #[tokio::test]
    async fn the_file_of_a_running_sandbox_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("there must be room for a folder");
        let path = folder.path().join("kubeconfig");
        let (first, second) = (listener().await, listener().await);
        let _file = File::write(&first, &path).await.expect("the place is free");
        let refused = File::write(&second, &path).await.err().expect("the first one runs");
        let start = format!("{} belongs to a sandbox that runs at {}: ", path.display(), first.address());
        assert!(refused.starts_with(&start), "{refused}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), first.kubeconfig());
        // A killed sandbox leaves its file behind, and the file may then be replaced.
        drop(first);
        assert!(File::write(&second, &path).await.is_ok());
    }
}
