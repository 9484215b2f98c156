//! The metrics that upstream's manager serves.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;

/// The metrics endpoint of the peer.
#[derive(Clone)]
pub struct PeerMetrics {
    client: Client,
    port: u16,
}

impl PeerMetrics {
    /// The endpoint of a peer that was started with [`Self::args`].
    pub fn at(port: u16) -> Result<Self> {
        let url = format!("https://127.0.0.1:{port}").parse().context("the address of the peer is none")?;
        let mut config = kube::Config::new(url);
        // The peer signs its certificate itself.
        config.accept_invalid_certs = true;
        config.read_timeout = Some(Duration::from_secs(10));
        Ok(Self { client: Client::try_from(config).context("cannot make a client of the peer")?, port })
    }

    /// The flags that let the peer serve its metrics to every user of this machine.
    pub fn args(&self) -> [String; 3] {
        [
            format!("--secure-port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            "--authorization-always-allow-paths=/metrics".to_owned(),
        ]
    }

    /// Reads `/metrics`.
    pub async fn read(&self) -> Result<String> {
        let request = http::Request::get("/metrics").body(Vec::new()).context("no request")?;
        self.client.request_text(request).await.context("cannot read the metrics of the peer")
    }
}
