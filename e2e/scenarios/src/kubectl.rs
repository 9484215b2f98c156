//! kubectl commands that depend on no particular controller. A real API server shows that a scenario is right, a sandbox
//! that it serves as the real one does.

use anyhow::{Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("deployment,replicaset").ours() => {
        "kubectl/prints_tables": prints_tables,
        "kubectl/describes_and_explains": describes_and_explains,
        "kubectl/creates_what_people_create": creates_what_people_create,
        "kubectl/applies": applies,
        "kubectl/applies_what_it_has_read": applies_what_it_has_read,
        "kubectl/applies_by_the_server": applies_by_the_server,
        "kubectl/patches_in_all_forms": patches_in_all_forms,
        "kubectl/labels_and_annotates": labels_and_annotates,
        "kubectl/waits_and_deletes": waits_and_deletes,
        "kubectl/is_refused_with_reasons": is_refused_with_reasons,
    }
}

/// The columns of a table's first line.
fn columns(table: &str) -> Vec<&str> {
    table.lines().next().unwrap_or_default().split("  ").map(str::trim).filter(|column| !column.is_empty()).collect()
}

fn contains_all(text: &str, parts: &[&str]) -> Result<()> {
    let missing: Vec<&&str> = parts.iter().filter(|part| !text.contains(**part)).collect();
    ensure!(missing.is_empty(), "{missing:?} is missing in:\n{text}");
    Ok(())
}

async fn roll_out(kubectl: &Kubectl<'_>, replicas: usize) -> Result<()> {
    kubectl.run(&format!("create deployment web --image=example/main:1 --replicas={replicas}")).await?;
    kubectl.run("rollout status deployment/web --timeout=90s").await?;
    Ok(())
}

async fn prints_tables(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    roll_out(&kubectl, 2).await?;
    let rows: [(&str, &[&str]); 9] = [
        ("get deployments", &["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]),
        (
            "get deployments -o wide",
            &["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"],
        ),
        ("get rs", &["NAME", "DESIRED", "CURRENT", "READY", "AGE"]),
        ("get pods", &["NAME", "READY", "STATUS", "RESTARTS", "AGE"]),
        (
            "get po -o wide",
            &["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"],
        ),
        ("get nodes", &["NAME", "STATUS", "ROLES", "AGE", "VERSION"]),
        ("get ns", &["NAME", "STATUS", "AGE"]),
        ("get events", &["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]),
        ("get pods -A --show-labels", &["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "LABELS"]),
    ];
    for (line, expected) in rows {
        let table = kubectl.run(line).await?;
        ensure!(columns(&table) == expected, "`kubectl {line}`: {:?}", columns(&table));
    }
    let pods = kubectl.run("get pods -l app=web --no-headers").await?;
    ensure!(
        pods.lines().count() == 2 && pods.lines().all(|line| line.contains("1/1") && line.contains("Running")),
        "{pods}"
    );
    let image = kubectl.run("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}").await?;
    ensure!(image == "example/main:1", "{image}");
    contains_all(
        &kubectl.run("get deploy,rs,pods").await?,
        &["deployment.apps/web", "replicaset.apps/web-", "pod/web-"],
    )?;
    contains_all(&kubectl.run("get all").await?, &["deployment.apps/web", "pod/web-"])?;
    contains_all(&kubectl.run("get deploy web -o yaml").await?, &["kind: Deployment", "resourceVersion:"])?;
    contains_all(&kubectl.run("get pods --field-selector=status.phase=Pending").await?, &["No resources found"])?;
    Ok(())
}

async fn describes_and_explains(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    roll_out(&kubectl, 1).await?;
    contains_all(
        &kubectl.run("describe deployment web").await?,
        &["StrategyType:", "RollingUpdate", "NewReplicaSet:", "ScalingReplicaSet", "MinimumReplicasAvailable"],
    )?;
    contains_all(
        &kubectl.run("describe pods -l app=web").await?,
        &["Node:", "Conditions:", "Controlled By:  ReplicaSet/web-"],
    )?;
    contains_all(&kubectl.run("describe nodes").await?, &["Capacity:", "Allocated resources:"])?;
    contains_all(
        &kubectl.run("explain deployment.spec.strategy").await?,
        &["KIND:       Deployment", "VERSION:    v1", "rollingUpdate\t<RollingUpdateDeployment>", "type\t<string>"],
    )?;
    contains_all(
        &kubectl.run("explain pods.spec --recursive").await?,
        &["containers\t<[]Container> -required-", "nodeSelector\t<map[string]string>"],
    )?;
    contains_all(&kubectl.run("events --for=deployment/web").await?, &["ScalingReplicaSet"])?;
    contains_all(
        &kubectl.run("api-resources").await?,
        &["deployments", "deploy", "apps/v1", "horizontalpodautoscalers"],
    )?;
    contains_all(&kubectl.run("api-versions").await?, &["apps/v1", "batch/v1", "v1"])?;
    contains_all(&kubectl.run("version").await?, &["Server Version: v1.37"])?;
    ensure!(kubectl.run("auth can-i create pods").await?.trim() == "yes");
    contains_all(&kubectl.run("auth whoami").await?, &["Username"])?;
    contains_all(&kubectl.run("rollout history deployment/web").await?, &["REVISION"])?;
    Ok(())
}

async fn creates_what_people_create(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let rows = [
        ("create configmap settings --from-literal=a=b", "configmap/settings created"),
        ("create secret generic key --from-literal=a=b", "secret/key created"),
        ("create serviceaccount robot", "serviceaccount/robot created"),
        ("create quota small --hard=pods=20", "resourcequota/small created"),
        ("create role reader --verb=get --resource=pods", "role.rbac.authorization.k8s.io/reader created"),
        (
            "create rolebinding reads --role=reader --serviceaccount=default:robot",
            "rolebinding.rbac.authorization.k8s.io/reads created",
        ),
        ("create job once --image=example/main:1", "job.batch/once created"),
        ("create cronjob often --image=example/main:1 --schedule=*/5_*_*_*_*", "cronjob.batch/often created"),
        (
            "create poddisruptionbudget few --min-available=1 --selector=app=web",
            "poddisruptionbudget.policy/few created",
        ),
        ("create ingress door --rule=example.com/=web:80", "ingress.networking.k8s.io/door created"),
        ("create deployment web --image=example/main:1 --port=80", "deployment.apps/web created"),
        ("expose deployment web --port=80", "service/web exposed"),
        ("autoscale deployment web --min=1 --max=3 --cpu=80%", "horizontalpodautoscaler.autoscaling/web autoscaled"),
        ("run single --image=example/main:1 --restart=Never", "pod/single created"),
        (
            "create deployment dry --image=example/main:1 --dry-run=server",
            "deployment.apps/dry created (server dry run)",
        ),
    ];
    for (line, expected) in rows {
        // A line is split at spaces, and a schedule has some.
        let words: Vec<String> = line
            .split(' ')
            .map(|word| if word.starts_with("--schedule") { word.replace('_', " ") } else { word.to_owned() })
            .collect();
        let output = kubectl.run_words(&words).await?;
        ensure!(output.trim() == expected, "`kubectl {line}`: {output}");
    }
    contains_all(&kubectl.run("get service web").await?, &["ClusterIP", "80/TCP"])?;
    contains_all(&kubectl.run("get hpa,pdb,cronjob,job,ingress").await?, &["Deployment/web", "cronjob.batch/often"])?;
    contains_all(&kubectl.refused("get deployment dry").await?, &["deployments.apps \"dry\" not found"])?;
    Ok(())
}

fn manifest(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "labels": { "tier": "front" } },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": image, "env": [{ "name": "A", "value": "1" }] }] },
            },
        },
    })
}

async fn applies(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let mut object = manifest("example/main:1");
    let apply = format!("apply -f {}", kubectl.manifest(&object)?);
    ensure!(kubectl.run(&apply).await?.trim() == "deployment.apps/web created");
    ensure!(kubectl.run(&apply).await?.trim() == "deployment.apps/web unchanged");
    object["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{ "name": "B", "value": "2" }]);
    kubectl.manifest(&object)?;
    contains_all(
        &kubectl.diff(&apply.replacen("apply", "diff", 1)).await?,
        &["-        - name: A", "+        - name: B"],
    )?;
    ensure!(kubectl.run(&apply).await?.trim() == "deployment.apps/web configured");
    let env = kubectl.run("get deploy web -o jsonpath={.spec.template.spec.containers[0].env}").await?;
    ensure!(env == r#"[{"name":"B","value":"2"}]"#, "{env}");
    object["spec"]["replica"] = json!(3);
    kubectl.manifest(&object)?;
    contains_all(&kubectl.refused(&apply).await?, &["strict decoding error: unknown field \"spec.replica\""])?;
    Ok(())
}

async fn applies_what_it_has_read(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    kubectl.run("create configmap one --from-literal=a=1").await?;
    kubectl.run("create configmap two --from-literal=a=1").await?;
    let list: Value = serde_json::from_str(&kubectl.run("get configmap one two -o json").await?)?;
    ensure!(list["kind"] == "List", "{list}");
    kubectl.run("delete configmap two").await?;
    let output = kubectl.run(&format!("apply -f {}", kubectl.manifest(&list)?)).await?;
    contains_all(&output, &["configmap/one configured", "configmap/two created"])
}

async fn applies_by_the_server(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let mut object = manifest("example/main:1");
    let file = kubectl.manifest(&object)?;
    let apply = |manager: &str| format!("apply --server-side --field-manager={manager} -f {file}");
    ensure!(kubectl.run(&apply("one")).await?.trim() == "deployment.apps/web serverside-applied");
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("example/main:2");
    kubectl.manifest(&object)?;
    let output = kubectl.refused(&apply("two")).await?;
    contains_all(
        &output,
        &["conflict with \"one\"", ".spec.template.spec.containers[name=\"main\"].image", "--force-conflicts"],
    )?;
    kubectl.run(&format!("{} --force-conflicts", apply("two"))).await?;
    let fields =
        kubectl.run("get deploy web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}").await?;
    contains_all(&fields, &["one", "two"])?;
    // The label belongs to the field manager `one` alone: when `one` leaves it out, it goes.
    object["metadata"]["labels"] = json!({});
    kubectl.manifest(&object)?;
    kubectl.run(&apply("two")).await?;
    ensure!(kubectl.run("get deploy web -o jsonpath={.metadata.labels.tier}").await? == "front");
    kubectl.run(&apply("one")).await?;
    ensure!(kubectl.run("get deploy web -o jsonpath={.metadata.labels.tier}").await?.is_empty());
    Ok(())
}

async fn patches_in_all_forms(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    roll_out(&kubectl, 1).await?;
    let container =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"1"}]}]}}}}"#;
    let rows = [
        ("strategic", container.to_owned()),
        ("merge", r#"{"metadata":{"labels":{"a":"b"}}}"#.to_owned()),
        ("json", r#"[{"op":"replace","path":"/spec/replicas","value":2}]"#.to_owned()),
    ];
    for (form, patch) in rows {
        let output = kubectl.run(&format!("patch deployment web --type={form} -p {patch}")).await?;
        ensure!(output.trim() == "deployment.apps/web patched", "{form}: {output}");
    }
    let read = async |path: &str| kubectl.run(&format!("get deploy web -o jsonpath={{{path}}}")).await;
    ensure!(read(".spec.template.spec.containers[0].env[0].name").await? == "A");
    ensure!(read(".spec.template.spec.containers[0].image").await? == "example/main:1");
    ensure!(read(".metadata.labels.a").await? == "b" && read(".spec.replicas").await? == "2");
    // The fourth form is server-side apply.
    let file = kubectl.manifest(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": { "replicas": 3 },
    }))?;
    kubectl.run(&format!("apply --server-side --force-conflicts -f {file}")).await?;
    ensure!(read(".spec.replicas").await? == "3");
    let output = kubectl
        .refused(r#"patch deployment web --type=json -p [{"op":"test","path":"/spec/replicas","value":9}]"#)
        .await?;
    contains_all(&output, &["the server rejected our request due to an error in our request"])?;
    Ok(())
}

async fn labels_and_annotates(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    kubectl.run("create configmap settings --from-literal=a=b").await?;
    ensure!(kubectl.run("label configmap settings colour=red").await?.trim() == "configmap/settings labeled");
    let output = kubectl.refused("label configmap settings colour=blue").await?;
    contains_all(&output, &["already has a value"])?;
    kubectl.run("label configmap settings colour=blue --overwrite").await?;
    contains_all(&kubectl.run("get configmaps -l colour=blue").await?, &["settings"])?;
    contains_all(&kubectl.run("get configmaps -L colour").await?, &["COLOUR", "blue"])?;
    ensure!(kubectl.run("label configmap settings colour-").await?.trim() == "configmap/settings unlabeled");
    ensure!(kubectl.run("annotate configmap settings note=short").await?.trim() == "configmap/settings annotated");
    ensure!(kubectl.run("get configmap settings -o jsonpath={.metadata.annotations.note}").await? == "short");
    Ok(())
}

async fn waits_and_deletes(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    kubectl.run("create deployment web --image=example/main:1 --replicas=2").await?;
    let output = kubectl.run("wait deployment/web --for=condition=Available --timeout=90s").await?;
    ensure!(output.trim() == "deployment.apps/web condition met", "{output}");
    kubectl.run("wait deployment/web --for=jsonpath={.status.readyReplicas}=2 --timeout=90s").await?;
    kubectl.run("scale deployment/web --replicas=3").await?;
    kubectl.run("wait pods -l app=web --for=condition=Ready --timeout=90s").await?;
    let output = kubectl.run("delete deployment web").await?;
    contains_all(&output, &["deployment.apps \"web\" deleted"])?;
    eventually("the pods of a deleted deployment to go", async || {
        let left = kubectl.run("get pods,rs -o name").await?;
        ensure!(left.trim().is_empty(), "{left}");
        Ok(())
    })
    .await?;
    kubectl.run("create configmap held --from-literal=a=b").await?;
    kubectl.run(r#"patch configmap held --type=merge -p {"metadata":{"finalizers":["example.com/hold"]}}"#).await?;
    kubectl.run("delete configmap held --wait=false").await?;
    ensure!(!kubectl.run("get configmap held -o jsonpath={.metadata.deletionTimestamp}").await?.is_empty());
    kubectl.run(r#"patch configmap held --type=merge -p {"metadata":{"finalizers":null}}"#).await?;
    contains_all(&kubectl.refused("get configmap held").await?, &["configmaps \"held\" not found"])?;
    kubectl.run("run single --image=example/main:1").await?;
    kubectl.run("delete pod single --grace-period=0 --force").await?;
    contains_all(&kubectl.refused("get pod single").await?, &["pods \"single\" not found"])?;
    Ok(())
}

async fn is_refused_with_reasons(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    roll_out(&kubectl, 1).await?;
    let rows = [
        ("get nothings", "the server doesn't have a resource type \"nothings\""),
        ("get deployment absent", "Error from server (NotFound): deployments.apps \"absent\" not found"),
        ("create deployment web --image=example/main:1", "deployments.apps \"web\" already exists"),
        ("create deployment Bad_Name --image=example/main:1", "Invalid value: \"Bad_Name\""),
        (
            r#"patch deployment web --type=merge -p {"spec":{"selector":{"matchLabels":{"app":"other"}}}}"#,
            "field is immutable",
        ),
        (r#"patch deployment web --type=merge -p {"spec":{"replicas":-1}}"#, "must be greater than or equal to 0"),
        ("get pods --field-selector=spec.unknown=1", "field label not supported: spec.unknown"),
        ("delete namespace kube-system", "is forbidden"),
    ];
    for (line, expected) in rows {
        let output = kubectl.refused(line).await?;
        ensure!(output.contains(expected), "`kubectl {line}`: {output}");
    }
    Ok(())
}
