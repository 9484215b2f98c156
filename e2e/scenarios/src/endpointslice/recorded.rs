//! The same changes under the peer and under ours, with a comparison of the slices that follow from each.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

use super::{apply, create_pod, endpoints, node, pod, service, slices, status};

/// Changes by kubectl. `READY` and `UNREADY` stand for a status.
const CHANGES: [&str; 24] = [
    "label svc web team=a",
    "patch pod b --subresource=status -p UNREADY",
    r#"patch svc web -p {"spec":{"publishNotReadyAddresses":true}}"#,
    r#"patch svc web -p {"spec":{"publishNotReadyAddresses":false}}"#,
    "patch pod b --subresource=status -p READY",
    "label pod b app=other --overwrite",
    "label pod b app=web --overwrite",
    r#"patch svc web --type=json -p [{"op":"replace","path":"/spec/ports/0/targetPort","value":9090}]"#,
    r#"patch svc web --type=json -p [{"op":"replace","path":"/spec/ports/0/targetPort","value":"http"}]"#,
    r#"patch svc web -p {"spec":{"trafficDistribution":"PreferClose"}}"#,
    r#"patch svc web -p {"spec":{"trafficDistribution":"PreferSameNode"}}"#,
    r#"patch svc web -p {"spec":{"trafficDistribution":null}}"#,
    "label endpointslice -l kubernetes.io/service-name=web extra=1",
    "delete endpointslice -l kubernetes.io/service-name=web",
    r#"patch pod a -p {"metadata":{"finalizers":["example.com/hold"]}}"#,
    "delete pod a --wait=false --grace-period=0 --force",
    r#"patch pod a -p {"metadata":{"finalizers":null}}"#,
    r#"patch svc web -p {"spec":{"selector":{"app":"none"}}}"#,
    r#"patch svc web -p {"spec":{"selector":{"app":"web"}}}"#,
    "label endpoints plain note=1",
    r#"patch endpoints plain -p {"subsets":[{"notReadyAddresses":[{"ip":"10.9.0.7"}],"ports":[{"port":1}]}]}"#,
    "annotate endpoints plain example.com/note=1",
    "label endpoints plain endpointslice.kubernetes.io/skip-mirror=true",
    "label endpoints plain endpointslice.kubernetes.io/skip-mirror-",
];

/// Ours does after each change what the peer did.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let theirs = play(&case, Subject::Peer).await.context("the peer plays")?;
    let ours = play(&case, case.subject()).await.context("we play")?;
    for ((change, theirs), ours) in CHANGES.iter().zip(theirs).zip(ours) {
        ensure!(theirs == ours, "after {change:?}\n  theirs: {theirs}\n  ours:   {ours}");
    }
    Ok(())
}

/// Makes the changes under one manager, and returns what is there after each.
async fn play(case: &Case, subject: Subject) -> Result<Vec<Value>> {
    let kubectl = Kubectl::of(case);
    let mut manager = case.start(subject, &[])?;
    apply(&kubectl, &node()).await?;
    apply(&kubectl, &service("web", &json!({}))).await?;
    apply(&kubectl, &service("plain", &json!({ "selector": null }))).await?;
    apply(&kubectl, &endpoints(&["10.9.0.1"])).await?;
    for (name, ip) in [("a", "10.9.0.1"), ("b", "10.9.0.2")] {
        create_pod(&kubectl, name, "web", ip).await?;
    }
    apply(&kubectl, &pod("c", "web", 8081)).await?;
    kubectl.run(&format!("patch pod c --subresource=status -p {}", status("10.9.0.3", true))).await?;
    settled(&kubectl).await?;
    let mut recorded = Vec::new();
    for change in CHANGES {
        let line = change.replace("UNREADY", &status("10.9.0.2", false)).replace("READY", &status("10.9.0.2", true));
        kubectl.run(&line).await?;
        recorded.push(settled(&kubectl).await.with_context(|| format!("after {change:?}"))?);
    }
    manager.must_run()?;
    kubectl.run("delete pods --all --grace-period=0 --force").await?;
    kubectl.run("delete svc,endpoints,endpointslices,events --all").await?;
    Ok(recorded)
}

/// What is there once nothing has changed for two seconds: a change of a slice by another client is answered after one.
async fn settled(kubectl: &Kubectl<'_>) -> Result<Value> {
    let (mut last, mut since) = (Value::Null, tokio::time::Instant::now());
    eventually("what follows from the change", async || {
        let now = read(kubectl).await?;
        if now != last {
            (last, since) = (now.clone(), tokio::time::Instant::now());
        }
        ensure!(since.elapsed().as_secs() >= 2, "it goes on");
        Ok(now)
    })
    .await
}

/// What both managers are to bring about: no names, times and versions.
async fn read(kubectl: &Kubectl<'_>) -> Result<Value> {
    let endpoint = |endpoint: &Value| {
        let mut endpoint = endpoint.clone();
        if let Some(target) = endpoint["targetRef"].as_object_mut() {
            target.retain(|field, _| field != "uid" && field != "namespace");
        }
        endpoint.to_string()
    };
    let mut shown = Vec::new();
    for name in ["web", "plain"] {
        for slice in slices(kubectl, name).await? {
            let mut endpoints: Vec<String> =
                slice["endpoints"].as_array().into_iter().flatten().map(endpoint).collect();
            endpoints.sort_unstable();
            let metadata = &slice["metadata"];
            let annotations: Vec<&String> =
                metadata["annotations"].as_object().into_iter().flatten().map(|(key, _)| key).collect();
            let owner = &metadata["ownerReferences"][0]["kind"];
            // Not `generateName`: upstream's mirroring drops it with the first update of a slice.
            let fields = [&metadata["labels"], owner, &slice["addressType"], &slice["ports"]];
            // The trigger time is there or not by how many changes one sync saw.
            let annotations: Vec<_> = annotations.into_iter().filter(|key| !key.contains("trigger-time")).collect();
            shown.push(json!([fields, annotations, endpoints]).to_string());
        }
    }
    shown.sort_unstable();
    Ok(json!(shown))
}
