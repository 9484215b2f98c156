//! The Unix socket for `sandbox tell`: one command per connection.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kcm_sandbox_cluster::Cluster;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::console::{LONGEST, run_command};

/// Timeout for a client to send its command and read the response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent clients; further ones wait.
const CLIENTS: usize = 16;
/// Delay before accepting again after accept failed, mostly for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The file of a socket; dropping this removes it.
pub(super) struct File {
    path: PathBuf,
    /// Device and inode: another sandbox may have replaced the socket.
    id: (u64, u64),
}

impl Drop for File {
    fn drop(&mut self) {
        if id(&self.path).is_ok_and(|id| id == self.id) {
            // Not found is success.
            drop(fs::remove_file(&self.path));
        }
    }
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// A listening socket with mode 0600.
pub(super) struct Socket {
    listener: UnixListener,
}

impl Socket {
    /// Binds the socket, and replaces the socket of a killed sandbox.
    ///
    /// # Errors
    /// A sentence, if a sandbox already listens there, the path is no socket, or the socket cannot be created.
    pub(super) fn bind(path: &Path) -> Result<(Self, File), String> {
        bind(path).map_err(|refusal| {
            let path = path.display();
            match refusal {
                Refusal::Running => format!(
                    "a sandbox listens on {path} already: end it, or give this one files of its own with \
                     --socket=PATH and --write-kubeconfig=PATH"
                ),
                Refusal::NoSocket => format!(
                    "cannot make the socket {path}: what is there is no socket; move it away, or choose another path \
                     with --socket=PATH"
                ),
                Refusal::System(error) => {
                    format!("cannot make the socket {path}: {error}; choose another path with --socket=PATH")
                }
            }
        })
    }

    /// Serves commands until the future is dropped.
    pub(super) async fn serve(self, cluster: Arc<Cluster>) {
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(_) = clients.join_next() => {}
                accepted = self.listener.accept(), if clients.len() < CLIENTS => match accepted {
                    Ok((stream, _)) => {
                        let answer = answer(stream, cluster.clone());
                        // A client that exceeds the timeout gets no response.
                        clients.spawn(async { drop(timeout(TIMEOUT, answer).await) });
                    }
                    Err(_) => sleep(ACCEPT_RETRY).await,
                },
            }
        }
    }
}

enum Refusal {
    Running,
    NoSocket,
    System(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

fn bind(path: &Path) -> Result<(Socket, File), Refusal> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if !fs::symlink_metadata(path)?.file_type().is_socket() {
                return Err(Refusal::NoSocket);
            }
            match BlockingStream::connect(path) {
                // Left behind by a sandbox that was killed.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                Err(error) => return Err(error.into()),
                Ok(_) => return Err(Refusal::Running),
            }
            UnixListener::bind(path)
        }
        bound => bound,
    }?;
    let file = File { path: path.to_owned(), id: id(path)? };
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok((Socket { listener }, file))
}

async fn answer(mut stream: UnixStream, cluster: Arc<Cluster>) -> io::Result<()> {
    let mut command = Vec::new();
    let (reading, mut writing) = stream.split();
    reading.take(LONGEST).read_to_end(&mut command).await?;
    writing.write_all(run_command(&cluster, &String::from_utf8_lossy(&command)).as_bytes()).await?;
    writing.shutdown().await
}

/// Sends a command to the sandbox that listens on a socket and returns the response.
pub(super) fn send(path: &Path, command: &str) -> Result<String, String> {
    let exchange = || -> io::Result<String> {
        let mut stream = BlockingStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.write_all(command.as_bytes())?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    exchange().map_err(|error| {
        format!(
            "no sandbox answers on {}: {error}; start one with `sandbox`, or name its socket with --socket=PATH",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("there must be room for a folder")
    }

    #[tokio::test]
    async fn the_socket_has_mode_0600_and_is_removed_on_drop() {
        let folder = folder();
        let path = folder.path().join("socket");
        let (_socket, file) = Socket::bind(&path).expect("the place is free");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
        let folder = folder();
        let path = folder.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("the place is free"));
        assert!(path.exists());
        let (_socket, _file) = Socket::bind(&path).expect("the socket is stale");
        let refused = Socket::bind(&path).err().expect("the socket is in use");
        assert!(refused.starts_with("a sandbox listens on "), "{refused}");
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_path_that_is_no_socket_is_not_replaced() {
        let folder = folder();
        let path = folder.path().join("letters");
        fs::write(&path, "dear").expect("there must be room");
        let refused = Socket::bind(&path).err().expect("something is there");
        assert!(refused.contains("what is there is no socket"), "{refused}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "dear");
    }

    #[tokio::test]
    async fn the_socket_of_another_sandbox_is_not_removed() {
        let folder = folder();
        let path = folder.path().join("socket");
        let (_first, file) = Socket::bind(&path).expect("the place is free");
        fs::remove_file(&path).expect("it is there");
        let (_second, _file) = Socket::bind(&path).expect("the place is free again");
        drop(file);
        assert!(path.exists());
    }
}
