//! Commands that people type, and the terminal they type them at.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;

use kcm_sandbox_cluster::Cluster;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};

/// The longest command that is read.
pub(super) const LONGEST: u64 = 4096;
/// What answers begin with that are none.
pub(super) const ERROR: &str = "error: ";

/// Does what a line asks for, and says what came of it.
pub(super) fn obey(cluster: &Cluster, line: &str) -> String {
    let mut answer = match cluster.command(line.trim()) {
        Ok(answer) => answer,
        Err(error) => format!("{ERROR}{error}"),
    };
    if !answer.ends_with('\n') {
        answer.push('\n');
    }
    answer
}

/// Tells the terminal; where nobody reads, nobody is told.
pub(super) fn say(text: &str) {
    let mut out = io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Columns and rows of the terminal that is written to, if it is one; zero where it does not know.
pub(super) fn window() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Whether somebody types commands: the system stops a process in the background that reads its terminal.
pub(super) fn is_typed_at() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == getpgrp())
}

/// Takes commands from standard input, for ever.
pub(super) async fn take_commands(cluster: Arc<Cluster>) {
    if is_typed_at() || !io::stdin().is_terminal() {
        let mut input = BufReader::new(tokio::io::stdin());
        let mut line = Vec::new();
        while let Ok(1..) = (&mut input).take(LONGEST).read_until(b'\n', &mut line).await {
            if !line.trim_ascii().is_empty() {
                say(&obey(&cluster, &String::from_utf8_lossy(&line)));
            }
            line.clear();
        }
    }
    std::future::pending::<()>().await;
}

/// Waits until the window of the terminal is closed.
pub(super) async fn closed() {
    // Without a terminal, as under `nohup`, whoever started this has decided what becomes of the signal.
    if io::stdin().is_terminal()
        && let Ok(mut hangup) = signal(SignalKind::hangup())
        && hangup.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}
