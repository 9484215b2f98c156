//! A TCP load balancer, whose servers a scenario chooses, and whose connections it cuts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes each connection on to the next of its servers; ends when dropped.
pub struct Balancer {
    port: u16,
    state: Arc<watch::Sender<State>>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct State {
    servers: Vec<u16>,
    /// Number of times that all connections were closed.
    cuts: u64,
}

impl Balancer {
    /// Starts a balancer of servers at these ports of the loopback interface.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub async fn start(servers: &[u16]) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot listen on a free port")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(watch::Sender::new(State { servers: servers.to_vec(), cuts: 0 }));
        let mut task = JoinSet::new();
        task.spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { port, state, _task: task })
    }

    /// The port at which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Passes new connections on to these servers. Connections to others go on.
    pub fn balance(&self, servers: &[u16]) {
        self.state.send_modify(|state| state.servers = servers.to_vec());
    }

    /// Closes all connections, and each new one, until [`balance`](Self::balance) names servers again.
    pub fn cut(&self) {
        self.state.send_modify(|state| *state = State { servers: Vec::new(), cuts: state.cuts + 1 });
    }

    /// Writes a copy of a kubeconfig whose server is this balancer, and returns its path.
    ///
    /// # Errors
    ///
    /// If the kubeconfig is not JSON, or the copy cannot be written.
    pub fn kubeconfig(&self, kubeconfig: &Path) -> Result<PathBuf> {
        kubeconfig_at(kubeconfig, self.port)
    }
}

/// Writes a copy of a kubeconfig whose server is at that port of the loopback interface, and returns its path.
///
/// # Errors
///
/// If the kubeconfig is not JSON, or the copy cannot be written.
pub fn kubeconfig_at(kubeconfig: &Path, port: u16) -> Result<PathBuf> {
    let text = std::fs::read_to_string(kubeconfig).context("cannot read the kubeconfig")?;
    let mut config: serde_json::Value = serde_json::from_str(&text).context("the kubeconfig is not JSON")?;
    config["clusters"][0]["cluster"]["server"] = format!("https://127.0.0.1:{port}").into();
    let path = kubeconfig.with_extension(format!("{port}.kubeconfig"));
    std::fs::write(&path, config.to_string()).context("cannot write a kubeconfig")?;
    Ok(path)
}

async fn accept(listener: TcpListener, state: Arc<watch::Sender<State>>) {
    let mut connections = JoinSet::new();
    let mut number: usize = 0;
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => if let Ok((client, _)) = accepted {
                let (server, cuts) = {
                    let current = state.borrow();
                    let place = number.checked_rem(current.servers.len());
                    (place.and_then(|place| current.servers.get(place).copied()), current.cuts)
                };
                number += 1;
                if let Some(server) = server {
                    connections.spawn(pass(client, server, state.subscribe(), cuts));
                }
            },
        }
    }
}

/// Passes bytes on until an end closes or the balancer is cut once more.
async fn pass(mut client: TcpStream, server: u16, mut state: watch::Receiver<State>, cuts: u64) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let cut = async { drop(state.wait_for(|state| state.cuts != cuts).await) };
    let passed = async { drop(copy_bidirectional(&mut client, &mut server).await) };
    tokio::select! {
        biased;
        () = cut => {}
        () = passed => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server that greets each connection with its letter.
    async fn greeter(letter: u8) -> (u16, JoinSet<()>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it listens").port();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut client, _)) = listener.accept().await {
                drop(client.write_all(&[letter]).await);
                open.push(client);
            }
        });
        (port, task)
    }

    /// The first byte of a new connection, and the connection.
    async fn greeted(balancer: &Balancer) -> (Option<u8>, TcpStream) {
        let mut client = TcpStream::connect(("127.0.0.1", balancer.port())).await.expect("it listens");
        let mut byte = [0];
        let read = client.read(&mut byte).await.unwrap_or(0);
        ((read == 1).then_some(byte[0]), client)
    }

    #[tokio::test]
    async fn connections_go_to_each_server_in_turn_and_end_when_they_are_cut() {
        let ((a, _first), (b, _second)) = (greeter(b'a').await, greeter(b'b').await);
        let balancer = Balancer::start(&[a]).await.expect("a port is free");
        let (first, mut kept) = greeted(&balancer).await;
        balancer.balance(&[a, b]);
        let mut others = [greeted(&balancer).await.0, greeted(&balancer).await.0];
        others.sort_unstable();
        assert_eq!((first, others), (Some(b'a'), [Some(b'a'), Some(b'b')]));
        balancer.cut();
        balancer.balance(&[]);
        assert_eq!(kept.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
        assert_eq!(greeted(&balancer).await.0, None);
        balancer.balance(&[b]);
        assert_eq!(greeted(&balancer).await.0, Some(b'b'));
    }
}
