//! Runs a control plane with nodes until interrupted; `cargo xtask serve` builds it and starts this.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;

use anyhow::Result;
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::{binaries, interrupt, nodes};

const NODES: usize = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match interrupt::or(serve()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<()> {
    let plane = ControlPlane::start(Options { scheduler: true, kwok: true, ..Options::default() }).await?;
    nodes::create(&plane.client(), "node", NODES).await?;
    println!(
        "A control plane with {NODES} nodes and no controllers runs until Ctrl-C. Logs: {}",
        plane.logs().display()
    );
    println!("\n  export KUBECONFIG={}", plane.kubeconfig().display());
    println!("  {} get nodes", binaries::control_plane("kubectl")?.display());
    std::future::pending().await
}
