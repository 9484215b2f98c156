//! The status page and profiles on the port of a manager.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;

use super::credentials::{Credentials, Port};

/// What gzip begins with.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The status page with its settings, and profiles that Go's tool reads, for those who may see them and no others.
pub(super) async fn serves_the_page_and_profiles(case: Case) -> Result<()> {
    let credentials = Credentials::make(&case).await?;
    let [port] = free_ports()?;
    let mut arguments = credentials.arguments(&case);
    let flags = [format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned(), "--debug-ui".to_owned()];
    arguments.extend(flags);
    let _manager = case.start(case.subject(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let (port, master) = (Port(port), credentials.named("certificate-of-masters")?);
    // The authorities of clients are read from the cluster a moment after the start.
    let page = eventually("the page to be served", async || {
        let (code, page) = port.get("/debug/ui", &master).await?;
        ensure!(code == 200, "{code}: {page}");
        Ok(page)
    })
    .await?;
    ensure!(page.contains("<html") && !page.contains("src=\"http"), "{page}");
    let (code, settings) = port.get("/debug/ui/settings", &master).await?;
    let settings: serde_json::Value = serde_json::from_str(&settings).context("the settings are JSON")?;
    ensure!(code == 200 && settings.to_string().contains("debug-ui"), "{code}: {settings}");

    for path in ["/debug/pprof/profile?seconds=1", "/debug/pprof/heap"] {
        let (code, profile) = port.get_bytes(path, &master).await?;
        // The heap is profiled in the product alone, which has the allocator for it.
        let is_absent = path.ends_with("heap") && code == 501;
        ensure!(is_absent || (code == 200 && profile.starts_with(GZIP)), "{path}: {code}, {} bytes", profile.len());
    }
    let (code, index) = port.get("/debug/pprof/", &master).await?;
    ensure!(code == 200 && index.contains("/debug/pprof/profile"), "{code}: {index}");
    for path in ["/debug/ui", "/debug/ui/settings", "/debug/pprof/", "/debug/pprof/profile?seconds=1"] {
        for (credential, expected) in [("none", 403), ("wrong-token", 401), ("token-of-nobody", 403)] {
            let (code, body) = port.get(path, &credentials.named(credential)?).await?;
            ensure!(code == expected, "{path} with {credential}: {code}: {body}");
        }
    }
    Ok(())
}
