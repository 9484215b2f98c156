//! Terminal input and output: commands on standard input, messages on standard output.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;

use kcm_sandbox_cluster::Cluster;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};

/// Maximum length of a command in bytes.
pub(super) const LONGEST: u64 = 4096;
/// Prefix of a response that is an error.
pub(super) const ERROR: &str = "error: ";

/// Executes a command line on the cluster and returns the response.
pub(super) fn run_command(cluster: &Cluster, line: &str) -> String {
    let mut answer = match cluster.command(line.trim()) {
        Ok(answer) => answer,
        Err(error) => format!("{ERROR}{error}"),
    };
    if !answer.ends_with('\n') {
        answer.push('\n');
    }
    answer
}

/// Writes to standard output; write errors are ignored.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Columns and rows of the terminal on standard output, if it is one; zero if the terminal does not know them.
pub(super) fn window() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Reports whether standard input is a terminal whose foreground process group is this one.
///
/// The system stops a background process that reads from its terminal.
pub(super) fn is_interactive() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp())
}

/// Executes commands from standard input; never returns.
pub(super) async fn take_commands(cluster: Arc<Cluster>) {
    if is_interactive() || !io::stdin().is_terminal() {
        let mut input = BufReader::new(tokio::io::stdin());
        let mut line = Vec::new();
        while let Ok(1..) = (&mut input).take(LONGEST).read_until(b'\n', &mut line).await {
            if !line.trim_ascii().is_empty() {
                print(&run_command(&cluster, &String::from_utf8_lossy(&line)));
            }
            line.clear();
        }
    }
    std::future::pending::<()>().await;
}

/// Waits until the terminal is closed (SIGHUP).
pub(super) async fn hangup() {
    // Without a terminal, as under `nohup`, the disposition of the signal is left as it was inherited.
    if io::stdin().is_terminal()
        && let Ok(mut hangup) = signal(SignalKind::hangup())
        && hangup.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}
