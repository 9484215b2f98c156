//! Client identities: what our program does as whom, and that it needs no right beyond upstream's roles.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::rbac::v1 as rbacv1;
use kcm_e2e_harness::audit::{self, AuditedRequest, forbidden};
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::Deserialize;
use serde_json::json;

kcm_e2e_harness::scenarios! {
    Setup::of("*").ours().with_own_managers() => {
        "identities/needs_upstreams_roles_alone": needs_upstreams_roles_alone,
        "identities/roles_are_those_of_the_table": roles_are_those_of_the_table,
    }
}

/// The roles that Kubernetes binds to controller managers and to the service accounts of controllers.
const TABLE: &str = include_str!("../../../controller-manager/tests/data/rbac.json");

/// What the manager writes as itself; everything else is written by the service accounts of controllers.
const WRITTEN_BY_THE_MANAGER: [&str; 6] =
    ["events", "leases", "namespaces", "secrets", "serviceaccounts", "serviceaccounts/token"];

/// All controllers, with leader election, do what a person makes them do; nothing is forbidden. Scripts show that for each
/// controller.
async fn needs_upstreams_roles_alone(case: Case) -> Result<()> {
    let namespace = format!("--leader-elect-resource-namespace={}", case.namespace());
    let mut manager = case.start(Subject::Ours, &["--leader-elect=true", namespace.as_str()])?;
    let deployments: Api<appsv1::Deployment> = case.api();
    let web = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(web)?).await.context("cannot create web")?;
    is_complete(&deployments, 2).await?;
    let pods: Api<corev1::Pod> = case.api();
    let pod = pods.list(&ListParams::default()).await?.items.into_iter().next().context("there is no pod")?;
    pods.delete(&pod.name_any(), &DeleteParams::default()).await.context("cannot delete a pod")?;
    let change = json!({ "spec": { "replicas": 3, "template": { "metadata": { "annotations": { "v": "2" } } } } });
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(change)).await.context("cannot change web")?;
    is_complete(&deployments, 3).await?;
    deployments.delete("web", &DeleteParams::default()).await.context("cannot delete web")?;
    manager.terminate()?;
    manager.wait(PATIENCE).await?;

    let expected = [
        ("system:serviceaccount:kube-system:deployment-controller", "create", "replicasets"),
        ("system:serviceaccount:kube-system:deployment-controller", "update", "deployments/status"),
        ("system:serviceaccount:kube-system:replicaset-controller", "create", "pods"),
        ("system:serviceaccount:kube-system:replicaset-controller", "update", "replicasets/status"),
        (audit::MANAGER, "create", "leases"),
    ];
    eventually("the audit log to have every write", async || {
        let requests = case.plane().audited()?;
        let mine: Vec<&AuditedRequest> =
            requests.iter().filter(|request| request.namespace == case.namespace()).collect();
        for (user, verb, resource) in expected {
            let found = mine.iter().any(|it| it.user == user && it.verb == verb && it.resource == resource);
            ensure!(found, "no {verb} of {resource} by {user}");
        }
        Ok(())
    })
    .await?;
    let requests = case.plane().audited()?;
    let refused = forbidden(&requests);
    ensure!(refused.is_empty(), "{refused:?}");
    let by_the_manager = requests.iter().filter(|request| request.user == audit::MANAGER);
    let written: BTreeSet<&str> =
        by_the_manager.filter(|request| request.is_write()).map(|request| request.resource.as_str()).collect();
    let others: Vec<&&str> = written.iter().filter(|resource| !WRITTEN_BY_THE_MANAGER.contains(resource)).collect();
    ensure!(others.is_empty(), "the manager itself writes {others:?}");
    agents_are_upstreams(&requests)
}

/// The manager that `deploy/` runs, all of it under this account, by a scenario that may be running at the same time.
const DEPLOYED: &str = "system:serviceaccount:kube-system:kcm";

/// The part of the User-Agent after the commit is the one that upstream's clients have.
fn agents_are_upstreams(requests: &[AuditedRequest]) -> Result<()> {
    for request in requests.iter().filter(|request| request.user != DEPLOYED) {
        let agent = request.user_agent.rsplit_once(" kubernetes/").map(|(_, rest)| rest).unwrap_or_default();
        let name = agent.split_once('/').map(|(_, name)| name).unwrap_or_default();
        let is_account = request.user.starts_with("system:serviceaccount:");
        ensure!(!is_account || name == request.user, "{request:?}");
        // Those of a namespace that is emptied are deleted by an account.
        let leader_election = !is_account && request.resource == "leases" && request.is_write();
        ensure!(!leader_election || name == "leader-election", "{request:?}");
        let informer = request.verb == "watch" && !is_account && request.resource != "leases";
        // The caches of metadata alone have an identity of their own.
        ensure!(!informer || ["shared-informers", "metadata-informers"].contains(&name), "{request:?}");
    }
    Ok(())
}

async fn is_complete(deployments: &Api<appsv1::Deployment>, replicas: i32) -> Result<()> {
    eventually("the deployment to be complete", async || {
        let web = deployments.get("web").await?;
        let status = web.status.clone().unwrap_or_default();
        let counts = [status.replicas, status.updated_replicas, status.available_replicas];
        ensure!(status.observed_generation == web.metadata.generation && counts == [Some(replicas); 3], "{status:?}");
        Ok(())
    })
    .await
}

/// Each rule with its lists sorted, as the order has no meaning.
type Rules = BTreeSet<[BTreeSet<String>; 5]>;

/// The API server makes the roles that the table has.
async fn roles_are_those_of_the_table(case: Case) -> Result<()> {
    let Table { cluster_roles, roles } = serde_json::from_str(TABLE).context("the table cannot be read")?;
    for (name, rules) in cluster_roles {
        let found = Api::<rbacv1::ClusterRole>::all(case.client()).get(&name).await;
        let found = found.with_context(|| format!("there is no cluster role {name}"))?;
        ensure!(sorted(found.rules.clone()) == sorted(Some(rules)), "{name} is {:?}", found.rules);
    }
    for (key, rules) in roles {
        let (namespace, name) = key.split_once('/').with_context(|| format!("{key} has no namespace"))?;
        let found = Api::<rbacv1::Role>::namespaced(case.client(), namespace).get(name).await;
        let found = found.with_context(|| format!("there is no role {key}"))?;
        ensure!(sorted(found.rules.clone()) == sorted(Some(rules)), "{key} is {:?}", found.rules);
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    cluster_roles: std::collections::BTreeMap<String, Vec<rbacv1::PolicyRule>>,
    roles: std::collections::BTreeMap<String, Vec<rbacv1::PolicyRule>>,
}

fn sorted(rules: Option<Vec<rbacv1::PolicyRule>>) -> Rules {
    let set = |list: Option<Vec<String>>| list.into_iter().flatten().collect();
    let sorted = rules.into_iter().flatten().map(|rule| {
        let rbacv1::PolicyRule { api_groups, resources, resource_names, verbs, non_resource_urls } = rule;
        [set(api_groups), set(resources), set(resource_names), verbs.into_iter().collect(), set(non_resource_urls)]
    });
    sorted.collect()
}
