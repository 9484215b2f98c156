//! What deploys the program, on a real API server with its authorization.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::binaries::{self, root};
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::process::{Process, send};
use kcm_e2e_harness::procfs;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::host::{create_set, has_pods};
use super::serving::{Credential, Port};

kcm_e2e_harness::scenarios! {
    Setup::of("").ours().with_own_managers() => {
        "deploy/has_the_rights_that_it_needs": has_the_rights_that_it_needs,
        "deploy/is_taken_by_the_api_server": is_taken_by_the_api_server,
    }
}

fn deploy(path: &str) -> String {
    root().join("deploy").join(path).display().to_string()
}

/// Makes the root file system read-only, and becomes the program with the variables of a pod, as the user of the Deployment.
const CONTAINER: &str = r#"port="$1"; shift; mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && ! touch "$0/written" &&
    exec env -i PATH=/usr/local/bin KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT="$port" \
    "$(command -v chroot)" --userspec=65532:65532 --groups= "$0" kube-controller-manager "$@""#;

/// The container of the Deployment as a kubelet runs it: as its user, on a read-only root that holds the program,
/// its settings and the credentials of its service account. It leads, makes pods, and has the tokens of scrapers reviewed.
async fn has_the_rights_that_it_needs(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    kubectl.run(&format!("apply --namespace=kube-system -f {}", deploy("kubernetes"))).await?;
    let object = async |name: &str| -> Result<Value> {
        let text = kubectl.run(&format!("get {name} --namespace=kube-system --output=json")).await?;
        serde_json::from_str(&text).with_context(|| format!("{name} is no JSON"))
    };
    let kubeconfig: Value = serde_json::from_slice(&std::fs::read(kubectl.kubeconfig)?)?;
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority"].as_str().context("the cluster has an authority")?;
    let server: http::Uri = cluster["server"].as_str().context("the cluster has an address")?.parse()?;
    let map = object("configmap/kcm").await?;
    let settings = map["data"]["kcm.yaml"].as_str().context("the map has no file")?;
    let token = kubectl.run("create token kcm --namespace=kube-system").await?;

    let root = Root::of_image()?;
    root.file("etc/kcm/kcm.yaml", settings)?;
    root.file(&format!("{ACCOUNT}/token"), token.trim())?;
    root.file(&format!("{ACCOUNT}/namespace"), "kube-system")?;
    root.file(&format!("{ACCOUNT}/ca.crt"), &std::fs::read_to_string(authority)?)?;
    let [port] = free_ports()?;
    let deployment = object("deployment/kcm").await?;
    let args =
        deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().context("it has no arguments")?;
    let mut words = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINER].map(str::to_owned).to_vec();
    words.push(root.0.path().display().to_string());
    words.push(server.port_u16().context("the API server has a port")?.to_string());
    words.extend(args.iter().filter_map(Value::as_str).map(str::to_owned));
    words.extend([format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut container = case.start_program(Path::new("/usr/bin/unshare"), &words)?;
    let worked = does_its_work(&case, &kubectl, &container, port).await;
    // A change of users keeps the kernel from ending the program with unshare.
    let program = procfs::children(container.id())?;
    program.into_iter().try_for_each(|program| send(program, Signal::TERM))?;
    let status = container.wait(END).await;
    worked?;
    ensure!(status?.success(), "it did not end in order:\n{}", container.printed()?);
    // As docs/deploy.md goes back.
    kubectl.run(&format!("delete --namespace=kube-system -f {}", deploy("kubernetes"))).await?;
    Ok(())
}

/// How long the program may take to end.
const END: Duration = Duration::from_secs(30);

/// It leads, makes pods as the user of the Deployment, and has tokens reviewed.
async fn does_its_work(case: &Case, kubectl: &Kubectl<'_>, container: &Process, port: u16) -> Result<()> {
    create_set(case, 2).await?;
    has_pods(case, 2).await?;
    let lease = kubectl.run("get lease/kcm --namespace=kube-system --output=json").await?;
    let lease: Value = serde_json::from_str(&lease).context("the lease is no JSON")?;
    ensure!(lease["spec"]["holderIdentity"].is_string(), "it leads: {lease}");
    let program = procfs::children(container.id())?.first().copied().context("unshare has no child")?;
    let status = std::fs::read_to_string(format!("/proc/{program}/status")).context("it does not run")?;
    ensure!(status.lines().any(|line| line.starts_with("Uid:\t65532\t65532")), "it runs as another user: {status}");

    let name = case.namespace();
    kubectl.run("create serviceaccount scraper").await?;
    kubectl.run(&format!("create clusterrole {name} --verb=get --non-resource-url=/metrics")).await?;
    kubectl
        .run(&format!("create clusterrolebinding {name} --clusterrole={name} --serviceaccount={name}:scraper"))
        .await?;
    let scraper = Credential::of_token(kubectl.run("create token scraper").await?.trim());
    for (credential, code) in [(Credential::default(), 403), (Credential::of_token("wrong"), 401), (scraper, 200)] {
        let (found, body) = Port(port).get("/metrics", &credential).await?;
        ensure!(found == code, "{found} in place of {code}: {body}");
    }
    Ok(())
}

/// The folder of a pod's credentials.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// The root file system of a container.
struct Root(TempDir);

impl Root {
    /// As deploy/Containerfile makes it: the program alone. A build that is not static has its libraries, too.
    fn of_image() -> Result<Self> {
        let folder = tempfile::tempdir().context("no room for the root of a container")?;
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).context("cannot open the root")?;
        let root = Self(folder);
        let program = Subject::Ours.program()?;
        root.copy(&program, "usr/local/bin/kube-controller-manager")?;
        let libraries = Command::new("ldd").arg(&program).output().context("cannot start ldd")?;
        for library in String::from_utf8_lossy(&libraries.stdout).split_whitespace().filter(|it| it.starts_with('/')) {
            root.copy(Path::new(library), library.trim_start_matches('/'))?;
        }
        Ok(root)
    }

    fn place(&self, path: &str) -> Result<PathBuf> {
        let path = self.0.path().join(path);
        let folder = path.parent().context("a file lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(path)
    }

    fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.place(to)?;
        std::fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        Ok(())
    }

    fn file(&self, path: &str, text: &str) -> Result<()> {
        let path = self.place(path)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// All manifests, and those that the chart renders.
async fn is_taken_by_the_api_server(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let helm = Command::new(binaries::control_plane("helm")?)
        .args(["template", "kcm", &deploy("helm/kube-controller-manager"), "--namespace=kube-system"])
        .args(["--kube-version=1.37.2", "--set=args={--controller-shutdown-timeout=5s}"])
        .output()
        .context("cannot start helm")?;
    ensure!(helm.status.success(), "the chart does not render: {}", String::from_utf8_lossy(&helm.stderr));
    let rendered = kubectl.folder.join("chart.yaml");
    std::fs::write(&rendered, helm.stdout)?;
    for file in [deploy("kubernetes"), deploy("kubeadm"), rendered.display().to_string()] {
        kubectl.run(&format!("apply --namespace=kube-system --dry-run=server --validate=strict -f {file}")).await?;
    }
    Ok(())
}
