//! [`Bound`]: a sandbox that owns its port, socket and files, and runs its tasks.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kcm_framework::client::ClientAuthority;
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{Metrics, Stop, error_chain};
use kcm_sandbox_apiserver::{Sandbox, SandboxOptions};
use kcm_sandbox_cluster::{Cluster, ClusterOptions};
use kcm_sandbox_listener::{ListenOptions, Listener};

use crate::banner::{self, Banner};
use crate::plan::Plan;
use crate::screen::Screen;
use crate::socket::{self, Socket};
use crate::tasks::Tasks;
use crate::{console, demo, kubeconfig, unreconciled_kinds};

/// A sandbox with its listener, socket and files; nothing runs yet.
pub(super) struct Bound {
    plan: Plan,
    sandbox: Sandbox,
    seed: u64,
    /// Number of objects loaded from manifests.
    loaded: usize,
    listener: Listener,
    socket: Option<Socket>,
    files: Files,
}

/// Files that are removed at the end. No task owns them: an aborted task would leave them behind.
struct Files {
    _socket: Option<socket::File>,
    _kubeconfig: kubeconfig::File,
}

impl Bound {
    /// Creates the cluster, binds its listener and socket, and writes its kubeconfig.
    ///
    /// The socket comes before the kubeconfig: of two sandboxes in one folder, the second is refused before it
    /// overwrites the kubeconfig of the first.
    ///
    /// # Errors
    /// All reasons against starting; nothing is left behind.
    pub(super) async fn bind(plan: Plan) -> Result<Self, Vec<String>> {
        let one = |reason: String| vec![reason];
        let options = &plan.options;
        let now = SystemClock.now();
        let seed = options.seed.unwrap_or(now.as_microsecond().cast_unsigned());
        // The request log is for tests.
        let sandbox = Sandbox::new(SandboxOptions { start: now, seed, request_log: 0, ..SandboxOptions::default() });
        sandbox.serve_usage();
        if options.run_controllers {
            // With --run-controllers=false, another process may run them.
            sandbox.mark_unreconciled(unreconciled_kinds::without(&plan.controllers));
        }
        let listen = ListenOptions { address: options.address, ..ListenOptions::default() };
        let listener = Listener::bind(&sandbox, listen).await.map_err(|error| one(error_chain(&error)))?;
        let (socket, socket_file) = options.socket.as_deref().map(Socket::bind).transpose().map_err(one)?.unzip();
        let loaded = load(&sandbox, options.load.clone()).await?;
        let kubeconfig = kubeconfig::File::write(&listener, &options.kubeconfig).await.map_err(one)?;
        if let Some(folder) = &options.save {
            // A folder that cannot be created is reported at the start, before there is anything to lose.
            let created = fs::create_dir_all(folder);
            created.map_err(|error| one(format!("--save: cannot make the folder {}: {error}", folder.display())))?;
        }
        let files = Files { _socket: socket_file, _kubeconfig: kubeconfig };
        Ok(Self { plan, sandbox, seed, loaded, listener, socket, files })
    }

    /// Runs until `stop`, the end of the demo, or the failure of a task.
    ///
    /// # Errors
    /// The messages of the failed tasks.
    pub(super) async fn run(self, stop: &Stop) -> Result<(), Vec<String>> {
        let banner = self.banner();
        let Self { plan: Plan { options, rules, manager, port, .. }, sandbox, seed, listener, socket, files, .. } =
            self;
        let cluster = ClusterOptions { nodes: options.nodes, seed, rules, ..ClusterOptions::default() };
        let cluster = Arc::new(Cluster::start(&sandbox, cluster));
        let metrics = Metrics::new();
        // What the kubeconfig of a manager in another process would hold.
        let authority = ClientAuthority::new(listener.authority());
        console::print(&if options.demo { banner.short() } else { banner.text() });

        let mut tasks = Tasks::default();
        let drain = stop.drain.clone();
        tasks.start("the API server's listener", async move {
            listener.serve(drain.cancelled()).await;
            Ok(())
        });
        let (drain, watched) = (stop.drain.clone(), cluster.clone());
        tasks.start("the simulation of nodes", async move {
            tokio::select! {
                biased;
                () = drain.cancelled() => Ok(()),
                () = watched.failed() => Err("the nodes stand still: their simulation has panicked".to_owned()),
            }
        });
        if let Some(socket) = socket {
            let (drain, cluster) = (stop.drain.clone(), cluster.clone());
            tasks.start("the socket for commands", async move {
                tokio::select! {
                    biased;
                    () = drain.cancelled() => {}
                    () = socket.serve(cluster) => {}
                }
                Ok(())
            });
        }
        if options.run_controllers {
            let manager = manager.metrics(metrics.clone()).extension(authority);
            let manager = manager.build(sandbox.client(), banner.server.clone());
            if let Some(port) = port {
                tasks.start("the HTTPS port of the controller manager", (port.serve)(&manager, stop.clone()));
            }
            let stop = stop.clone();
            tasks.start("the controller manager", async move {
                manager.run(stop).await.map_err(|error| error_chain(&error))
            });
        }

        let foreground = async {
            if options.demo {
                demo::play(&sandbox, &metrics, Screen::of_process(), io::stdout()).await
            } else {
                console::take_commands(cluster.clone()).await;
                Ok(())
            }
        };
        let mut failures = Vec::new();
        tokio::select! {
            // Tasks that end after a stop signal are no failures.
            biased;
            // Ends the line with the `^C`, so that the shell's prompt begins on a new one.
            () = stop.drain.cancelled() => if console::window().is_some() { console::print("\n") },
            () = console::hangup() => {}
            failure = tasks.first_failure() => failures.push(failure),
            ended = foreground => failures.extend(ended.err().map(|error| error_chain(&error))),
        }
        stop.drain.cancel();
        failures.extend(tasks.join_all().await);
        drop(cluster);
        failures.extend(save(&sandbox, options.save).await.err());
        drop(files);
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    }

    fn banner(&self) -> Banner {
        let Plan { options, controllers, port, .. } = &self.plan;
        let port = port.as_ref().filter(|_| options.run_controllers);
        Banner {
            server: format!("https://{}", self.listener.address()),
            exposed: !self.listener.address().ip().is_loopback(),
            kubeconfig: banner::absolute(&options.kubeconfig),
            nodes: options.nodes,
            loaded: self.loaded,
            controllers: controllers.clone(),
            port: port.map(|port| port.url.clone()),
            page: port.and_then(|port| port.page.clone()),
            socket: options.socket.clone(),
            interactive: console::is_interactive(),
        }
    }
}

/// Saves manifests on a blocking thread, so that signals are still handled.
async fn save(sandbox: &Sandbox, folder: Option<PathBuf>) -> Result<(), String> {
    let Some(folder) = folder else { return Ok(()) };
    let (sandbox, place) = (sandbox.clone(), folder.display().to_string());
    match tokio::task::spawn_blocking(move || sandbox.save(&folder)).await {
        Ok(Ok(1)) => console::print(&format!("Saved 1 manifest in {place}.\n")),
        Ok(Ok(count)) => console::print(&format!("Saved {count} manifests in {place}.\n")),
        Ok(Err(error)) => return Err(error_chain(&error)),
        Err(_) => return Err("--save: writing manifests made this program panic, which is a bug of it".to_owned()),
    }
    Ok(())
}

/// Loads manifests on a blocking thread, so that signals are still handled.
async fn load(sandbox: &Sandbox, folder: Option<PathBuf>) -> Result<usize, Vec<String>> {
    let Some(folder) = folder else { return Ok(0) };
    let sandbox = sandbox.clone();
    match tokio::task::spawn_blocking(move || sandbox.load(&folder)).await {
        Ok(loaded) => loaded.map_err(|errors| errors.0),
        Err(_) => Err(vec!["--load: the manifests made this program panic, which is a bug of it".to_owned()]),
    }
}
