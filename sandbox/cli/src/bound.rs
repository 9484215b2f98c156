//! A sandbox that has its place, and then runs.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{Metrics, Stop, error_chain};
use kcm_sandbox_apiserver::{Sandbox, SandboxOptions};
use kcm_sandbox_cluster::{Cluster, ClusterOptions};
use kcm_sandbox_listener::{ListenOptions, Listener};

use super::parts::Parts;
use super::plan::Plan;
use super::screen::Screen;
use super::socket::{self, Socket};
use super::tour::{self, Tour};
use super::{console, demo, kubeconfig, unreconciled_kinds};

/// A sandbox that is there, with all that it holds of the machine; nothing runs yet.
pub(super) struct Bound {
    plan: Plan,
    sandbox: Sandbox,
    seed: u64,
    /// How many objects came from manifests.
    loaded: usize,
    listener: Listener,
    socket: Option<Socket>,
    files: Files,
}

/// What is to be removed in the end. No task owns it: one that is cut off would leave it behind.
struct Files {
    _socket: Option<socket::File>,
    _kubeconfig: kubeconfig::File,
}

impl Bound {
    /// Makes the cluster and takes its place on the machine.
    ///
    /// The socket comes before the kubeconfig: of two sandboxes in one folder, the second is refused before it takes
    /// the first one's kubeconfig away.
    ///
    /// # Errors
    /// Every reason for not starting; nothing is left behind then.
    pub(super) async fn bind(plan: Plan) -> Result<Self, Vec<String>> {
        let one = |reason: String| vec![reason];
        let options = &plan.options;
        let now = SystemClock.now();
        let seed = options.seed.unwrap_or(now.as_microsecond().cast_unsigned());
        // Nobody looks at the requests of a sandbox that people use.
        let sandbox = Sandbox::new(SandboxOptions { start: now, seed, request_log: 0, ..SandboxOptions::default() });
        if options.run_controllers {
            // Where they do not, somebody else's may.
            sandbox.unattended(unreconciled_kinds::without(&plan.controllers));
        }
        let listen = ListenOptions { address: options.address, ..ListenOptions::default() };
        let listener = Listener::bind(&sandbox, listen).await.map_err(|error| one(error_chain(&error)))?;
        let (socket, socket_file) = options.socket.as_deref().map(Socket::bind).transpose().map_err(one)?.unzip();
        let loaded = load(&sandbox, options.load.clone()).await?;
        let kubeconfig = kubeconfig::File::write(&listener, &options.kubeconfig).await.map_err(one)?;
        if let Some(folder) = &options.save {
            // Better now than after an afternoon's work.
            let made = fs::create_dir_all(folder);
            made.map_err(|error| one(format!("--save: cannot make the folder {}: {error}", folder.display())))?;
        }
        let files = Files { _socket: socket_file, _kubeconfig: kubeconfig };
        Ok(Self { plan, sandbox, seed, loaded, listener, socket, files })
    }

    /// Runs it until it is told to stop, the demo is over, or a part fails.
    ///
    /// # Errors
    /// What failed.
    pub(super) async fn run(self, stop: &Stop) -> Result<(), Vec<String>> {
        let tour = self.tour();
        let Self { plan: Plan { options, rules, manager, .. }, sandbox, seed, listener, socket, files, .. } = self;
        let cluster = ClusterOptions { nodes: options.nodes, seed, rules, ..ClusterOptions::default() };
        let cluster = Arc::new(Cluster::start(&sandbox, cluster));
        let metrics = Metrics::new();
        console::say(&if options.demo { tour.short() } else { tour.text() });

        let mut parts = Parts::default();
        let told = stop.drain.clone();
        parts.start("the API server's listener", async move {
            listener.serve(told.cancelled()).await;
            Ok(())
        });
        let (told, watched) = (stop.drain.clone(), cluster.clone());
        parts.start("the simulation of nodes", async move {
            tokio::select! {
                () = watched.failed() => Err("the nodes stand still: their simulation has panicked".to_owned()),
                () = told.cancelled() => Ok(()),
            }
        });
        if let Some(socket) = socket {
            let (told, cluster) = (stop.drain.clone(), cluster.clone());
            parts.start("the socket for commands", async move {
                tokio::select! {
                    () = socket.serve(cluster) => {}
                    () = told.cancelled() => {}
                }
                Ok(())
            });
        }
        if options.run_controllers {
            let manager = manager.metrics(metrics.clone()).build(sandbox.client(), tour.server.clone());
            let stop = stop.clone();
            parts.start("the controller manager", async move {
                manager.run(stop).await.map_err(|error| error_chain(&error))
            });
        }

        let person = async {
            if options.demo {
                demo::play(&sandbox, &metrics, Screen::of_process(), io::stdout()).await
            } else {
                console::take_commands(cluster.clone()).await;
                Ok(())
            }
        };
        let mut failures = Vec::new();
        tokio::select! {
            // Parts that end because they are told to are no failures.
            biased;
            // The shell's next line shall not begin behind the `^C`.
            () = stop.drain.cancelled() => if console::window().is_some() { console::say("\n") },
            () = console::closed() => {}
            failure = parts.failure() => failures.push(failure),
            ended = person => failures.extend(ended.err().map(|error| error_chain(&error))),
        }
        stop.drain.cancel();
        failures.extend(parts.ended().await);
        drop(cluster);
        failures.extend(save(&sandbox, options.save).await.err());
        drop(files);
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    }

    fn tour(&self) -> Tour {
        let Plan { options, controllers, .. } = &self.plan;
        Tour {
            server: format!("https://{}", self.listener.address()),
            exposed: !self.listener.address().ip().is_loopback(),
            kubeconfig: tour::absolute(&options.kubeconfig),
            nodes: options.nodes,
            loaded: self.loaded,
            controllers: controllers.clone(),
            socket: options.socket.clone(),
            typed: console::is_typed_at(),
        }
    }
}

/// Saves into a folder while signals are heard.
async fn save(sandbox: &Sandbox, folder: Option<PathBuf>) -> Result<(), String> {
    let Some(folder) = folder else { return Ok(()) };
    let (sandbox, place) = (sandbox.clone(), folder.display().to_string());
    match tokio::task::spawn_blocking(move || sandbox.save(&folder)).await {
        Ok(Ok(1)) => console::say(&format!("Saved 1 manifest in {place}.\n")),
        Ok(Ok(count)) => console::say(&format!("Saved {count} manifests in {place}.\n")),
        Ok(Err(error)) => return Err(error_chain(&error)),
        Err(_) => return Err("--save: writing manifests made this program panic, which is a bug of it".to_owned()),
    }
    Ok(())
}

/// Loads a folder while signals are heard.
async fn load(sandbox: &Sandbox, folder: Option<PathBuf>) -> Result<usize, Vec<String>> {
    let Some(folder) = folder else { return Ok(0) };
    let sandbox = sandbox.clone();
    match tokio::task::spawn_blocking(move || sandbox.load(&folder)).await {
        Ok(loaded) => loaded.map_err(|errors| errors.0),
        Err(_) => Err(vec!["--load: the manifests made this program panic, which is a bug of it".to_owned()]),
    }
}
