//! A Kubernetes control plane: etcd and an API server on free ports of the loopback interface, with a scheduler and
//! simulated nodes where the options say so; or a sandbox in their place.

use std::cell::RefCell;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;

use crate::audit::{self, AuditedRequest};
use crate::pki::Pki;
use crate::process::Process;
use crate::subject::Subject;
use crate::{binaries, wait};

/// How long the API server may take until it is ready, on a busy machine.
const START: Duration = Duration::from_mins(3);

const AUDIT_LOG: &str = "audit.log";

const KUBE_API_SERVER: &str = "kube-apiserver";

/// In a sandbox, pods run and stop at once, as kwok's do.
const AT_ONCE: &str = "pods: [{ do: start=0s pull=0s ready=0s stop=0s }]";

/// What runs beside etcd and the API server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Run kube-scheduler.
    pub scheduler: bool,
    /// Run kwok, so that nodes made by [`crate::nodes::create`] become ready and run their pods.
    pub kwok: bool,
    /// Admit pods of service accounts that exist alone, as clusters do, and record what controller managers ask for, for
    /// [`ControlPlane::audited`]. What creates the account `default` of each namespace does not run here.
    pub strict: bool,
    /// The API server to run.
    pub api_server: ApiServer,
    /// Further flags of the API server.
    pub api_server_args: Vec<String>,
}

/// A version of the API server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApiServer {
    /// The version that the manager is built for.
    #[default]
    Current,
    /// The minor version before, as `cargo xtask control-plane --older` builds it.
    Older,
}

impl ApiServer {
    const fn program(self) -> &'static str {
        match self {
            Self::Current => "kube-apiserver",
            Self::Older => "kube-apiserver-1.36",
        }
    }
}

impl Options {
    /// Fails before anything is started if a program is missing.
    fn check(&self) -> Result<()> {
        let programs = [
            ("etcd", true),
            (self.api_server.program(), true),
            ("kube-scheduler", self.scheduler),
            ("kwok", self.kwok),
        ];
        for (program, _) in programs.into_iter().filter(|(_, needed)| *needed) {
            binaries::control_plane(program)?;
        }
        if self.kwok {
            binaries::kwok_stages()?;
        }
        Ok(())
    }
}

/// A process that serves the API, which a scenario may kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// kube-apiserver.
    ApiServer,
    /// etcd.
    Etcd,
}

impl Component {
    const fn process(self) -> &'static str {
        match self {
            Self::ApiServer => KUBE_API_SERVER,
            Self::Etcd => "etcd",
        }
    }
}

/// A running control plane; dropping it ends its processes and removes its files.
pub struct ControlPlane {
    // Dropped in this order: what uses the API server ends before it.
    processes: RefCell<Vec<Process>>,
    client: Client,
    kubeconfig: PathBuf,
    /// The kubeconfig of a controller manager; a sandbox has none.
    manager: Option<PathBuf>,
    /// What makes further users; a sandbox has only one.
    users: Option<Users>,
    // The store is not kept with the logs: it can be large, and says nothing that the API did not say.
    _store: Option<TempDir>,
    folder: TempDir,
}

/// Makes users of an API server.
struct Users {
    server: String,
    /// The port of the store.
    etcd: u16,
    pki: Pki,
}

impl ControlPlane {
    /// Starts one and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If a program is missing (the message names the command that builds it), ends by itself, or is
    /// not ready in time. The logs are kept then, and the message says where.
    pub async fn start(options: Options) -> Result<Self> {
        options.check()?;
        let mut folder = temporary()?;
        let plane = Self::start_in(folder.path(), &options).await;
        match plane {
            Ok(started) => Ok(started.in_folder(folder)),
            Err(error) => {
                folder.disable_cleanup(true);
                Err(error).with_context(|| format!("cannot start a control plane (logs: {})", folder.path().display()))
            }
        }
    }

    /// Starts a sandbox without controllers, as a process of its own.
    ///
    /// # Errors
    ///
    /// If our binary was not built (the message names the command), or the sandbox ends by itself or is not there in time.
    pub async fn sandbox(nodes: usize) -> Result<Self> {
        let folder = temporary()?;
        let kubeconfig = folder.path().join("sandbox.kubeconfig");
        let pods = folder.path().join("pods.yaml");
        fs::write(&pods, AT_ONCE).with_context(|| format!("cannot write {}", pods.display()))?;
        let args = [
            "sandbox".to_owned(),
            "--run-controllers=false".to_owned(),
            format!("--nodes={nodes}"),
            format!("--pods={}", pods.display()),
            "--socket=".to_owned(),
            format!("--write-kubeconfig={}", kubeconfig.display()),
        ];
        let mut sandbox = Process::start("sandbox", &Subject::Ours.program()?, &args, folder.path())?;
        // The kubeconfig is written when everything else is there.
        wait::eventually_within("the sandbox to write its kubeconfig", START, async || {
            sandbox.must_run()?;
            ensure!(kubeconfig.is_file(), "{} is not there", kubeconfig.display());
            Ok(())
        })
        .await?;
        let client = connect(&kubeconfig).await?;
        let processes = RefCell::new(vec![sandbox]);
        Ok(Self { processes, client, kubeconfig, manager: None, users: None, _store: None, folder })
    }

    async fn start_in(folder: &Path, options: &Options) -> Result<Started> {
        let pki = Pki::new(&folder.join("pki"))?;
        let store = temporary()?;
        let [etcd_clients, etcd_peers, api] = free_ports()?;
        let mut etcd = start_etcd(folder, store.path(), etcd_clients, etcd_peers)?;
        let mut api_server = start_api_server(folder, KUBE_API_SERVER, &pki, etcd_clients, api, options)?;
        let server = format!("https://127.0.0.1:{api}");
        let admin = pki.client("e2e-admin", &["system:masters"])?;
        let kubeconfig = write_kubeconfig(&folder.join("admin.kubeconfig"), &server, &pki, &admin)?;
        let manager = pki.client(audit::MANAGER, &[])?;
        let manager = write_kubeconfig(&folder.join("manager.kubeconfig"), &server, &pki, &manager)?;
        let client = connect(&kubeconfig).await?;

        let ready = wait::eventually_within("the API server to be ready", START, async || {
            // Nothing is gained by waiting for a process that has ended.
            if etcd.must_run().and_then(|()| api_server.must_run()).is_err() {
                return Ok(false);
            }
            check_ready(&client).await?;
            Ok(true)
        })
        .await?;
        etcd.must_run()?;
        api_server.must_run()?;
        ensure!(ready, "the API server ended before it was ready");

        let scheduler =
            if options.scheduler { Some(start_scheduler(folder, &kubeconfig, options.api_server)?) } else { None };
        let kwok = if options.kwok { Some(start_kwok(folder, &kubeconfig)?) } else { None };
        Ok(Started {
            kwok,
            scheduler,
            api_server,
            etcd,
            server,
            store_port: etcd_clients,
            client,
            pki,
            kubeconfig,
            manager,
            store,
        })
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The path of a kubeconfig with every right.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The path of a kubeconfig with the rights of a controller manager, which Kubernetes binds to its user; a sandbox has
    /// none.
    pub fn manager_kubeconfig(&self) -> Option<&Path> {
        self.manager.as_deref()
    }

    /// What controller managers have asked for, as far as it was recorded; see [`Options::strict`].
    ///
    /// # Errors
    ///
    /// If the record cannot be read.
    pub fn audited(&self) -> Result<Vec<AuditedRequest>> {
        let log = self.folder.path().join(AUDIT_LOG);
        if log.is_file() { audit::read(&log) } else { Ok(Vec::new()) }
    }

    /// Writes a kubeconfig for `user` in `groups`, and returns its path.
    ///
    /// # Errors
    ///
    /// If its certificate cannot be made.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let Users { server, pki, .. } = self.users.as_ref().context("a sandbox has no users but its own")?;
        let identity = pki.client(user, groups)?;
        let path = self.folder.path().join(format!("{}.kubeconfig", user.replace(':', "-")));
        write_kubeconfig(&path, server, pki, &identity)
    }

    /// The ports of the API server and of etcd.
    ///
    /// # Errors
    ///
    /// If they do not run here.
    pub fn ports(&self) -> Result<(u16, u16)> {
        let Users { server, etcd, .. } = self.users.as_ref().context("a sandbox has no etcd")?;
        let port = server.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Ok((port.context("the address of the API server has no port")?, *etcd))
    }

    /// Starts another API server over the store at that port, and returns it with its port. It need not be ready yet.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start_api_server_over(&self, etcd: u16) -> Result<(Process, u16)> {
        let users = self.users.as_ref().context("a sandbox has no etcd")?;
        let [port] = free_ports()?;
        let name = "kube-apiserver-2";
        let process = start_api_server(self.folder.path(), name, &users.pki, etcd, port, &Options::default())?;
        Ok((process, port))
    }

    /// CPU time that the API server has spent; of a sandbox, all of it.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn api_server_cpu(&self) -> Result<Duration> {
        let serves = |process: &&Process| ["kube-apiserver", "sandbox"].contains(&process.name());
        self.processes.borrow().iter().find(serves).context("no process serves the API")?.cpu_time()
    }

    /// Kills a component with SIGKILL.
    ///
    /// # Errors
    ///
    /// If it does not run here.
    pub fn kill(&self, component: Component) -> Result<()> {
        self.with(component, Process::kill9)
    }

    /// Starts a killed component again, on the same port and with the same data.
    ///
    /// # Errors
    ///
    /// If it still runs, or cannot be started.
    pub fn start_again(&self, component: Component) -> Result<()> {
        self.with(component, Process::start_again)
    }

    /// Makes a component hang: it keeps its connections and answers nothing.
    ///
    /// # Errors
    ///
    /// If it does not run here.
    pub fn pause(&self, component: Component) -> Result<()> {
        self.with(component, Process::pause)
    }

    /// Lets a component that hangs go on.
    ///
    /// # Errors
    ///
    /// If it does not run here.
    pub fn resume(&self, component: Component) -> Result<()> {
        self.with(component, Process::resume)
    }

    /// Waits until the API server is ready.
    ///
    /// # Errors
    ///
    /// If it is not ready in time.
    pub async fn is_ready(&self) -> Result<()> {
        wait::eventually_within("the API server to be ready", START, async || check_ready(&self.client).await).await
    }

    fn with(&self, component: Component, act: impl FnOnce(&mut Process) -> Result<()>) -> Result<()> {
        let mut processes = self.processes.borrow_mut();
        let process = processes.iter_mut().find(|process| process.name() == component.process());
        act(process.with_context(|| format!("no {} runs here", component.process()))?)
    }

    /// The folder of the logs of everything that runs here.
    pub fn logs(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the logs when the control plane goes.
    pub fn keep_logs(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// Fails if one of its processes has ended.
    ///
    /// # Errors
    ///
    /// The first that has, with the end of its log.
    pub fn must_run(&mut self) -> Result<()> {
        self.processes.get_mut().iter_mut().try_for_each(Process::must_run)
    }
}

impl Drop for ControlPlane {
    /// Kills its processes. Nothing of them is needed any more, and an API server takes more than a second to end.
    fn drop(&mut self) {
        for process in self.processes.get_mut() {
            drop(process.kill9());
        }
    }
}

/// All of a [`ControlPlane`] but the folder, which outlives a start that failed.
struct Started {
    kwok: Option<Process>,
    scheduler: Option<Process>,
    api_server: Process,
    etcd: Process,
    server: String,
    store_port: u16,
    client: Client,
    pki: Pki,
    kubeconfig: PathBuf,
    manager: PathBuf,
    store: TempDir,
}

impl Started {
    fn in_folder(self, folder: TempDir) -> ControlPlane {
        let used = [self.api_server, self.etcd];
        ControlPlane {
            processes: RefCell::new(self.kwok.into_iter().chain(self.scheduler).chain(used).collect()),
            client: self.client,
            kubeconfig: self.kubeconfig,
            manager: Some(self.manager),
            users: Some(Users { server: self.server, etcd: self.store_port, pki: self.pki }),
            _store: Some(self.store),
            folder,
        }
    }
}

async fn check_ready(client: &Client) -> Result<()> {
    let request = http::Request::get("/readyz").body(Vec::new())?;
    client.request_text(request).await.context("GET /readyz")?;
    Ok(())
}

fn start_etcd(logs: &Path, data: &Path, clients: u16, peers: u16) -> Result<Process> {
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    let args = [
        format!("--data-dir={}", data.join("etcd").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        // What is lost with the machine is lost with the test.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Process::start("etcd", &binaries::control_plane("etcd")?, &args, logs)
}

/// Starts an API server; `name` is the name of its log and of its certificate.
fn start_api_server(logs: &Path, name: &str, pki: &Pki, etcd: u16, port: u16, options: &Options) -> Result<Process> {
    let server = pki.server(name)?;
    let (sa_private, sa_public) = pki.service_account_keys()?;
    // The controller that takes the not-ready taint from a new node does not run here.
    let mut without = vec!["TaintNodesByCondition"];
    if !options.strict {
        without.push("ServiceAccount");
    }
    let mut args = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        // A loopback address makes no valid endpoint of the service `kubernetes`, and none is needed.
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--tls-cert-file={}", server.certificate.display()),
        format!("--tls-private-key-file={}", server.key.display()),
        format!("--client-ca-file={}", pki.authority().display()),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", sa_public.display()),
        format!("--service-account-signing-key-file={}", sa_private.display()),
        "--authorization-mode=RBAC".to_owned(),
        format!("--disable-admission-plugins={}", without.join(",")),
    ];
    if options.strict {
        let policy = logs.join("audit-policy.json");
        fs::write(&policy, audit::POLICY).with_context(|| format!("cannot write {}", policy.display()))?;
        args.push(format!("--audit-policy-file={}", policy.display()));
        args.push(format!("--audit-log-path={}", logs.join(AUDIT_LOG).display()));
        // In megabytes: it is not split into several files.
        args.push("--audit-log-maxsize=4096".to_owned());
    }
    args.extend(options.api_server_args.iter().cloned());
    Process::start(name, &binaries::control_plane(options.api_server.program())?, &args, logs)
}

fn start_scheduler(logs: &Path, kubeconfig: &Path, api_server: ApiServer) -> Result<Process> {
    let mut args = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=2000".to_owned(),
    ];
    if api_server == ApiServer::Older {
        // It would wait for APIs that the older server does not have, and place no pod.
        args.push("--emulated-version=1.36".to_owned());
    }
    Process::start("kube-scheduler", &binaries::control_plane("kube-scheduler")?, &args, logs)
}

fn start_kwok(logs: &Path, kubeconfig: &Path) -> Result<Process> {
    let args = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", binaries::kwok_stages()?.display()),
        format!("--manage-nodes-with-annotation-selector={}", crate::nodes::MANAGED),
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    Process::start("kwok", &binaries::control_plane("kwok")?, &args, logs)
}

fn write_kubeconfig(path: &Path, server: &str, pki: &Pki, user: &crate::pki::Identity) -> Result<PathBuf> {
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "e2e",
            "cluster": { "server": server, "certificate-authority": pki.authority() },
        }],
        "users": [{
            "name": "user",
            "user": { "client-certificate": user.certificate, "client-key": user.key },
        }],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "user" } }],
        "current-context": "e2e",
    });
    // JSON is YAML.
    fs::write(path, format!("{config:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.to_owned())
}

/// A client as a kubeconfig describes it.
///
/// # Errors
///
/// If the file cannot be read or does not make a client.
pub async fn connect(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("cannot use {}", kubeconfig.display()))?;
    // Every request is counted: none may be repeated behind our back.
    config.default_retry = false;
    Client::try_from(config).with_context(|| format!("cannot make a client from {}", kubeconfig.display()))
}

/// Free ports. They are held until all are found, so that they differ.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind(("127.0.0.1", 0)).context("cannot find a free port on 127.0.0.1")?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().context("a listener has no address")?.port();
    }
    if ports.contains(&0) {
        bail!("a listener on 127.0.0.1 has port 0");
    }
    Ok(ports)
}

fn temporary() -> Result<TempDir> {
    tempfile::Builder::new().prefix("kcm-e2e-").tempdir().context("cannot make a temporary folder")
}
