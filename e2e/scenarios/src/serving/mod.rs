//! The HTTPS port: what each credential gets from upstream's manager and from ours.

mod credentials;
mod debug;
mod explain;
mod flood;
mod lookup;
mod tls_client;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;

use credentials::Credentials;
pub(super) use credentials::{Credential, Port};

kcm_e2e_harness::scenarios! {
    Setup::of("replicaset").with_own_managers() => {
        "serving/every_credential_gets_what_the_table_says": answers_as_the_table_says,
        "serving/authorities_of_clients_follow_the_cluster": lookup::follows_the_config_map,
    }
    Setup::of("deployment,replicaset").with_own_managers() => {
        "serving/the_probes_of_kubeadm_and_a_scrape_succeed": is_probed_and_scraped,
    }
    Setup::of("deployment,replicaset,garbagecollector").ours().with_own_managers() => {
        "serving/explains_an_object_to_those_who_may_see_it": explain::explains,
    }
    Setup::of("deployment,replicaset").ours().with_own_managers() => {
        "serving/shows_the_status_page_and_profiles": debug::serves_the_page_and_profiles,
    }
    Setup::of("deployment,replicaset").ours().exclusively() => {
        "serving/a_flood_delays_no_renewal_and_no_rollout": flood::is_withstood,
    }
}

/// Path, credential and code.
const TABLE: &str = include_str!("../../../../controller-manager/tests/data/access.tsv");

async fn answers_as_the_table_says(case: Case) -> Result<()> {
    let credentials = Credentials::make(&case).await?;
    let [port] = free_ports()?;
    let mut arguments = credentials.arguments(&case);
    arguments.extend([format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()]);
    let _manager = case.start(case.subject(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let port = Port(port);
    // The authorities of clients are read from the cluster a moment after the start.
    eventually("clients to be known by their certificates", async || {
        let code = port.get("/metrics", &credentials.named("certificate-of-masters")?).await?.0;
        ensure!(code == 200, "{code}");
        Ok(())
    })
    .await?;
    let mut wrong = Vec::new();
    for row in TABLE.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [path, credential, expected] = columns[..] else { anyhow::bail!("{row:?} has no three columns") };
        let (code, _) = port.get(path, &credentials.named(credential)?).await?;
        if code.to_string() != expected {
            wrong.push(format!("{row}: {code}"));
        }
    }
    ensure!(wrong.is_empty(), "other codes than the table's: {wrong:#?}");
    Ok(())
}

/// kubeadm's probe is a GET without credentials on 127.0.0.1; a scraper has the token of a service account.
async fn is_probed_and_scraped(case: Case) -> Result<()> {
    let credentials = Credentials::make(&case).await?;
    let [port] = free_ports()?;
    let mut arguments = credentials.arguments(&case);
    arguments.extend([format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()]);
    let _manager = case.start(case.subject(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    let port = Port(port);
    eventually("the probe to succeed and name each controller", async || {
        let none = credentials.named("none")?;
        let (code, body) = port.get("/healthz", &none).await?;
        ensure!((code, body.as_str()) == (200, "ok"), "{code}: {body}");
        let (_, body) = port.get("/healthz?verbose", &none).await?;
        let lines: std::collections::BTreeSet<&str> = body.lines().collect();
        let expected = ["[+]deployment-controller ok", "[+]replicaset-controller ok", "healthz check passed"];
        let extra = ["[+]serviceaccount-token-controller ok"];
        ensure!(expected.iter().all(|line| lines.contains(line)), "{body}");
        ensure!(lines.iter().all(|line| expected.contains(line) || extra.contains(line)), "{body}");
        Ok(())
    })
    .await?;
    eventually("a scrape to show the queues", async || {
        let (code, body) = port.get("/metrics", &credentials.named("token-of-reader")?).await?;
        ensure!(code == 200, "{code}: {body}");
        ensure!(body.contains("workqueue_depth{") && body.contains("rest_client_requests_total{"), "{body}");
        Ok(())
    })
    .await?;
    // The authorities of clients are read from the cluster a moment after the start.
    eventually("the settings to be shown", async || {
        let (code, configz) = port.get("/configz", &credentials.named("certificate-of-masters")?).await?;
        ensure!(code == 200, "{code}: {configz}");
        let configz: serde_json::Value = serde_json::from_str(&configz).context("/configz is JSON")?;
        let connection = &configz["kubecontrollermanager.config.k8s.io"]["Generic"]["ClientConnection"];
        ensure!(connection["qps"] == 1000 && connection["burst"] == 2000, "{configz}");
        Ok(())
    })
    .await
}
