//! A proxy between one manager and the API server, whose network can be lost.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes bytes on while the network is up; ends when dropped.
pub(super) struct Proxy {
    kubeconfig: PathBuf,
    is_up: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// A proxy to the server of a kubeconfig, with a kubeconfig for the manager beside it.
    pub(super) async fn start(kubeconfig: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(kubeconfig).context("cannot read the kubeconfig")?;
        let mut config: serde_json::Value = serde_json::from_str(&text).context("the kubeconfig is not JSON")?;
        let server = &mut config["clusters"][0]["cluster"]["server"];
        let address = server.as_str().and_then(|url| url.strip_prefix("https://")).context("no address of a server")?;
        let address: SocketAddr = address.parse().context("the server's address is none")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on a free port")?;
        *server = format!("https://{}", listener.local_addr()?).into();
        let kubeconfig = kubeconfig.with_extension("proxy.kubeconfig");
        std::fs::write(&kubeconfig, config.to_string()).context("cannot write a kubeconfig")?;
        let is_up = watch::Sender::new(true);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, address, is_up.subscribe()));
        Ok(Self { kubeconfig, is_up, _tasks: tasks })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Loses the network: nothing passes until it is restored. Connections stay open, and what a sender has sent arrives
    /// late, unless the sender has reset the connection by then.
    pub(super) fn lose(&self) {
        self.is_up.send_replace(false);
    }

    /// The network is there again: bytes that were held back arrive.
    pub(super) fn restore(&self) {
        self.is_up.send_replace(true);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, is_up: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                let mut is_up = is_up.clone();
                connections.spawn(async move {
                    // A lost network lets no connection through either.
                    if !restored(&mut is_up).await {
                        return;
                    }
                    let Ok(server) = TcpStream::connect(server).await else { return };
                    let ((client_read, client_write), (server_read, server_write)) =
                        (client.into_split(), server.into_split());
                    tokio::select! {
                        () = pass(client_read, server_write, is_up.clone()) => {}
                        () = pass(server_read, client_write, is_up) => {}
                    }
                });
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Passes bytes on until an end closes. Bytes that are received while the network is lost arrive once it is restored; if the
/// sender resets the connection before, they are dropped.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut is_up: watch::Receiver<bool>) {
    let mut buffer = vec![0; 1 << 16];
    let mut held = Vec::new();
    let mut has_ended = false;
    while !has_ended || !held.is_empty() {
        let is_lost = !*is_up.borrow();
        if !is_lost && !held.is_empty() {
            if to.write_all(&std::mem::take(&mut held)).await.is_err() {
                return;
            }
            continue;
        }
        tokio::select! {
            changed = is_up.changed() => if changed.is_err() {
                return;
            },
            read = from.read(&mut buffer), if !has_ended => match read {
                Ok(0) => has_ended = true,
                Ok(count) => held.extend_from_slice(&buffer[..count]),
                Err(_) => return,
            },
        }
    }
}

/// Waits until the network is there; returns whether it is, and the proxy has not ended.
async fn restored(is_up: &mut watch::Receiver<bool>) -> bool {
    is_up.wait_for(|is_up| *is_up).await.is_ok()
}
