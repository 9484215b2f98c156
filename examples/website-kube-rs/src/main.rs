//! The operator as a program: the cluster of the kubeconfig, and the directory of host names as its argument.

use anyhow::Context as _;
use kcm_example_website::hosts::Hosts;
use prometheus_client::registry::Registry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let directory = std::env::args().nth(1).context("name the directory of host names as the only argument")?;
    let client = kube::Client::try_default().await.context("cannot use the kubeconfig")?;
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    kcm_example_website_kube_rs::run(client, Hosts::new(directory), &mut Registry::default(), stop).await?;
    Ok(())
}
