//! The program around the controllers: hosts with a plugin, and the errors when the API server cannot be used.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::rbac::v1 as rbacv1;
use kcm_e2e_harness::binaries;
use kcm_e2e_harness::manager_log::ExpectedError;
use kcm_e2e_harness::pki::Pki;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::requests::Requests;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("").ours().with_own_managers() => {
        "hello/labels_namespaces": labels_namespaces,
        "hello/beside_builtin": beside_builtin,
        "host/waits_for_rights": waits_for_rights,
    }
    Setup::of("").ours().with_own_managers().expecting(&[ExpectedError {
            message: "is not signed by a trusted authority",
            reason: "the kubeconfig names the CA of another cluster",
        }]) => {
        "host/wrong_authority": wrong_authority,
    }
    Setup::of("").ours().with_own_managers().expecting(&[ExpectedError {
            message: "does not know our credentials (401)",
            reason: "the client certificate is of another cluster",
        }]) => {
        "host/unknown_credentials": unknown_credentials,
    }
}

const LABEL: &str = "example.com/greeting";
const LIMITS: [&str; 4] = ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000"];

/// Longer than a program waits for an API server.
const END: Duration = Duration::from_secs(30);

/// Starts a program as a user, with a log of its own.
pub(super) fn start(case: &Case, program: &Path, kubeconfig: &Path, args: &[&str]) -> Result<Process> {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let args = [&[kubeconfig.as_str()], LIMITS.as_slice(), args].concat();
    case.start_program(program, &args)
}

/// Waits for the program to end by itself with `code`, and returns the only error that it printed.
async fn refusal(mut process: Process, code: i32) -> Result<String> {
    let status = process.wait(END).await?;
    let log = process.printed()?;
    ensure!(status.code() == Some(code), "it ended with {status}:\n{log}");
    let mut errors = log.lines().filter_map(|line| line.strip_prefix("error: "));
    match (errors.next(), errors.next()) {
        (Some(error), None) => Ok(error.to_owned()),
        _ => bail!("there must be one error:\n{log}"),
    }
}

/// Sends SIGTERM, and expects the program to end with exit code 0.
pub(super) async fn stop(mut process: Process) -> Result<()> {
    process.must_run()?;
    process.terminate()?;
    let status = process.wait(END).await?;
    ensure!(status.code() == Some(0), "it ended with {status}:\n{}", process.printed()?);
    Ok(())
}

async fn create_namespace(case: &Case, name: &str) -> Result<corev1::Namespace> {
    let mut namespace = corev1::Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    let namespaces: Api<corev1::Namespace> = Api::all(case.client());
    namespaces.create(&PostParams::default(), &namespace).await.with_context(|| format!("cannot make namespace {name}"))
}

/// Waits until every namespace that is not terminating has the greeting as its label.
async fn all_greeted(case: &Case, greeting: &str) -> Result<()> {
    let namespaces: Api<corev1::Namespace> = Api::all(case.client());
    eventually("every namespace to be greeted", async || {
        for namespace in namespaces.list(&ListParams::default()).await?.items {
            let found = namespace.labels().get(LABEL).map(String::as_str);
            ensure!(
                found == Some(greeting) || namespace.metadata.deletion_timestamp.is_some(),
                "{} has {found:?}",
                namespace.name_any()
            );
        }
        Ok(())
    })
    .await
}

async fn remove_namespace(case: &Case, name: &str) -> Result<()> {
    let namespaces: Api<corev1::Namespace> = Api::all(case.client());
    namespaces.delete(name, &DeleteParams::default()).await.with_context(|| format!("cannot remove {name}"))?;
    Ok(())
}

/// A host with a plugin alone labels namespaces that exist and new ones, and none twice.
async fn labels_namespaces(case: Case) -> Result<()> {
    let host = binaries::example_host("hello-host")?;
    let first = start(&case, &host, case.plane().kubeconfig(), &["--hello-greeting=servus"])?;
    all_greeted(&case, "servus").await?;
    let mine = format!("{}-new", case.namespace());
    create_namespace(&case, &mine).await?;
    all_greeted(&case, "servus").await?;
    stop(first).await?;

    let before = Requests::read(&case.client()).await?;
    let second = start(&case, &host, case.plane().kubeconfig(), &["--hello-greeting=servus"])?;
    let last = format!("{}-last", case.namespace());
    create_namespace(&case, &last).await?;
    all_greeted(&case, "servus").await?;
    let patches = Requests::read(&case.client()).await?.since(&before).of("PATCH", "namespaces");
    ensure!(patches == 1, "{patches} patches for one new namespace");
    stop(second).await?;
    remove_namespace(&case, &mine).await?;
    remove_namespace(&case, &last).await
}

/// One process runs the plugin and the built-in controllers.
async fn beside_builtin(case: Case) -> Result<()> {
    let host = binaries::example_host("hello-beside-builtin")?;
    let process = start(&case, &host, case.plane().kubeconfig(), &["--hello-greeting=moin"])?;
    create_set(&case, 2).await?;
    has_pods(&case, 2).await?;
    all_greeted(&case, "moin").await?;
    stop(process).await
}

/// Without permissions the program logs which are missing, and works as soon as they are granted.
async fn waits_for_rights(case: Case) -> Result<()> {
    let user = "e2e-unprivileged";
    let kubeconfig = case.plane().kubeconfig_for(user, &[])?;
    let process = start(&case, &Subject::Ours.program()?, &kubeconfig, &["--controllers=replicaset"])?;
    create_set(&case, 2).await?;
    for (resource, group) in [("pods", ""), ("replicasets", "apps")] {
        let name = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        // Values are quoted in the log.
        let refused = format!(r#"was refused with 403 Forbidden: {name} is forbidden: User \"{user}\" cannot "#);
        let remedy = format!("; grant the user list and watch of {name}\"");
        eventually(&format!("the log to say that {name} are forbidden"), async || {
            let log = process.printed()?;
            let logged = log.lines().any(|line| line.contains(&refused) && line.contains(&remedy));
            ensure!(logged, "the log is:\n{log}");
            Ok(())
        })
        .await?;
    }
    let bindings: Api<rbacv1::ClusterRoleBinding> = Api::all(case.client());
    let binding: rbacv1::ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": case.namespace() },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    }))?;
    bindings.create(&PostParams::default(), &binding).await.context("cannot grant rights")?;
    let worked = has_pods(&case, 2).await;
    // Stopped first: a reconcile without the rights would log an error that the scenario does not expect.
    let stopped = stop(process).await;
    bindings.delete(case.namespace(), &DeleteParams::default()).await.context("cannot take the rights back")?;
    worked?;
    stopped
}

/// A kubeconfig with the CA of another cluster is refused at once.
async fn wrong_authority(case: Case) -> Result<()> {
    let stranger = stranger(&case)?;
    let kubeconfig = changed_kubeconfig(&case, "wrong-authority", |config| {
        config["clusters"][0]["cluster"]["certificate-authority"] = json!(stranger.authority());
    })?;
    let error = refusal(start(&case, &Subject::Ours.program()?, &kubeconfig, &[])?, 2).await?;
    ensure!(
        error.starts_with("the certificate of the API server https://127.0.0.1:")
            && error.ends_with(
                "is not signed by a trusted authority: \
                 put the cluster's CA into `certificate-authority-data` of the kubeconfig"
            ),
        "{error}"
    );
    Ok(())
}

/// A client certificate of another cluster is refused at once.
async fn unknown_credentials(case: Case) -> Result<()> {
    let identity = stranger(&case)?.client("e2e-stranger", &["system:masters"])?;
    let kubeconfig = changed_kubeconfig(&case, "unknown-credentials", |config| {
        let user = &mut config["users"][0]["user"];
        user["client-certificate"] = json!(identity.certificate);
        user["client-key"] = json!(identity.key);
    })?;
    let error = refusal(start(&case, &Subject::Ours.program()?, &kubeconfig, &[])?, 2).await?;
    ensure!(error.ends_with("does not know our credentials (401): renew the user's in the kubeconfig"), "{error}");
    Ok(())
}

/// The PKI of another cluster.
fn stranger(case: &Case) -> Result<Pki> {
    Pki::new(&case.plane().logs().join(case.namespace()))
}

pub(super) fn changed_kubeconfig(
    case: &Case,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Result<std::path::PathBuf> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(case.plane().kubeconfig())?)?;
    change(&mut config);
    let path = case.plane().logs().join(format!("{name}.kubeconfig"));
    std::fs::write(&path, config.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Creates a replica set whose pods no scheduler takes.
pub(super) async fn create_set(case: &Case, replicas: i32) -> Result<()> {
    let set: appsv1::ReplicaSet = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "schedulerName": "no-scheduler", "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    }))?;
    case.api::<appsv1::ReplicaSet>().create(&PostParams::default(), &set).await.context("cannot create the set")?;
    Ok(())
}

/// Waits until the namespace of the scenario has that many pods.
pub(super) async fn has_pods(case: &Case, count: usize) -> Result<()> {
    let pods: Api<corev1::Pod> = case.api();
    eventually(&format!("{count} pods"), async || {
        let found = pods.list(&ListParams::default()).await?.items.len();
        ensure!(found == count, "there are {found}");
        Ok(())
    })
    .await
}
