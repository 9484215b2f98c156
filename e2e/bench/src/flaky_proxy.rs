//! A proxy in front of the API server that breaks all connections every few seconds.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use kcm_e2e_harness::control_plane::ControlPlane;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Passes bytes on, and drops all connections at an interval; ends when dropped.
pub(super) struct FlakyProxy {
    kubeconfig: PathBuf,
    _tasks: JoinSet<()>,
}

impl FlakyProxy {
    pub(super) async fn start(plane: &ControlPlane, every: Duration) -> Result<Self> {
        let text = std::fs::read_to_string(plane.kubeconfig()).context("cannot read the kubeconfig")?;
        let mut config: serde_json::Value = serde_json::from_str(&text).context("the kubeconfig is not JSON")?;
        let server = &mut config["clusters"][0]["cluster"]["server"];
        let address = server.as_str().and_then(|url| url.strip_prefix("https://")).context("no address of a server")?;
        let address: SocketAddr = address.parse().context("the server's address is none")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on a free port")?;
        *server = format!("https://{}", listener.local_addr()?).into();
        let kubeconfig = plane.logs().join("flaky-proxy.kubeconfig");
        std::fs::write(&kubeconfig, config.to_string()).context("cannot write a kubeconfig")?;
        let mut tasks = JoinSet::new();
        tasks.spawn(pass(listener, address, every));
        Ok(Self { kubeconfig, _tasks: tasks })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

async fn pass(listener: TcpListener, server: SocketAddr, every: Duration) {
    let mut connections = JoinSet::new();
    let mut breaks = tokio::time::interval(every);
    loop {
        tokio::select! {
            _ = breaks.tick() => connections.abort_all(),
            accepted = listener.accept() => if let Ok((mut client, _)) = accepted {
                connections.spawn(async move {
                    // A connection that fails by itself is one that was dropped earlier.
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        drop(copy_bidirectional(&mut client, &mut server).await);
                    }
                });
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}
