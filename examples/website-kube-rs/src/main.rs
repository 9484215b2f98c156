//! The operator as a program, with the companions that operators of kube-rs have: flags by clap, health and metrics by
//! axum, and leader election by kube-lease-manager.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::routing::get;
use clap::Parser;
use kcm_example_website::hosts::Hosts;
use kcm_example_website_kube_rs::run;
use kube_lease_manager::LeaseManagerBuilder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

/// Keeps a Deployment and a Service for each Website.
#[derive(Parser)]
struct Flags {
    /// The directory of host names: the operator keeps a file for each website in it.
    #[arg(long, default_value = "/var/lib/website-hosts")]
    website_hosts_dir: PathBuf,
    /// How many websites are reconciled at once.
    #[arg(long, default_value_t = 5)]
    concurrent_website_syncs: u16,
    /// Where health and metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    bind_address: SocketAddr,
    /// The namespace of the lease.
    #[arg(long, default_value = "default")]
    leader_elect_namespace: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let flags = Flags::parse();
    let client = kube::Client::try_default().await.context("cannot use the kubeconfig")?;
    let published = Counter::default();
    let mut metrics = Registry::default();
    metrics.register("website_published_hosts", "Number of host names that were published", published.clone());
    let metrics = Arc::new(metrics);
    let text = async move || {
        let mut text = String::new();
        encode(&mut text, &metrics).map(|()| text).map_err(|error| error.to_string())
    };
    let routes = Router::new().route("/healthz", get(async || "ok")).route("/metrics", get(text));
    let serving = axum::serve(TcpListener::bind(flags.bind_address).await?, routes);

    let lease = LeaseManagerBuilder::new(client.clone(), "website-controller")
        .with_namespace(flags.leader_elect_namespace)
        .build()
        .await?;
    let (mut leads, _renewal) = lease.watch().await;
    leads.wait_for(|leads| *leads).await?;
    let hosts = Hosts::new(flags.website_hosts_dir);
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    tokio::select! {
        ended = run(client, hosts, published, flags.concurrent_website_syncs, stop) => Ok(ended?),
        _ = leads.wait_for(|leads| !*leads) => bail!("the lease is lost"),
        ended = serving.into_future() => ended.context("cannot serve"),
    }
}
