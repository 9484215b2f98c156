//! A Kubernetes API server in this process, with simulated nodes: for tests, and for people who want a cluster to try
//! things in.
//!
//! Everything that talks to a cluster is tried against it: an ordinary client, kubectl among them, sees the semantics of
//! the real API server, in milliseconds, on a clock that tests pause, and with faults where a test wants them.
//!
//! ```text
//! kubectl ──HTTPS──▶ listener (token)
//!                       │
//! kube::Client ──▶ service ──▶ request ──▶ faults ──▶ server ──▶ storage     one lock, one version
//!        ▲        (tower)     (parsed)    (rules)    (pure)    ▲   │
//!        └─────────────────── stream ◀── watch (a cursor) ◀────┼── window of events
//!                                                              │   │
//!                     cluster: nodes, scheduler, kubelets, collector, namespaces
//! ```
//!
//! # What is served
//!
//! Every built-in resource in its preferred version, whatever a definition of a custom resource defines, and whatever a
//! test registers ([`Sandbox::register`]). The namespaces `default`, `kube-system`, `kube-public` and `kube-node-lease`
//! are there from the start; nothing is created in a namespace that is not.
//!
//! # Guarantees
//!
//! - One resource version counts all writes; each write takes the next one, and a write that changes nothing takes
//!   none. Lists show one version, pages of a list the same one.
//! - A list at a version and the watch from there lead to the state of any later list, whatever is selected. A
//!   version that has left the window is answered with 410: for a list as the answer, for a watch as an `ERROR` event
//!   within a stream of code 200, both as upstream does.
//! - Memory is bounded by the objects, the window of events ([`SandboxOptions::watch_window`], and 256 MB of objects at
//!   most) and the requests that are kept ([`SandboxOptions::request_log`]). Objects and events are kept
//!   as the JSON that lists and watches send, written once: a running pod with its managed fields is 4 kB, and so is
//!   an event of it in the window. 10,000 of both and 100 watches take less than 250 MB, controllers included (208 MB
//!   were measured), and a pod's whole start less than 2 ms of one processor.
//! - A watch holds a position in the window and a small batch, and sleeps until something happens to its resource. One
//!   that has missed an event that left the window is cut off, and nobody waits for it. A list and the first events
//!   of a watch hold the versions that they show until they are sent.
//! - Nothing happens by itself until a [`cluster::Cluster`] is started, but that events expire an hour after they were
//!   last written: no node, no garbage collection. Finalizers, grace periods and terminating namespaces wait for whoever
//!   ends them. Controllers are never part of it; whoever wants them runs them as its clients.
//! - The seed and the order of requests decide everything; times come from tokio's clock, on top of
//!   [`SandboxOptions::start`].
//! - A request whose future is dropped while a fault delays it takes no effect.
//!
//! # Faults
//!
//! [`Fault`] fails, delays, stalls or disconnects requests, or loses their answers; [`FaultControls`] holds, delays,
//! cuts and silences watches, drops events and serves stale lists. A missing permission is a fault that answers
//! [`Status::forbidden`]; an exhausted quota is a hook of [`Sandbox::admit`].
//!
//! # Where it knowingly differs from the real API server
//!
//! [`scenarios::differences`] lists it. What it does alike is a table of requests and answers, [`scenarios`], that holds
//! on kube-apiserver too.
//!
//! # Examples
//!
//! ```
//! use kcm_sandbox::{Fault, PODS, Sandbox, Verb};
//! use kube::api::{Api, ListParams};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let sandbox = Sandbox::default();
//! sandbox.faults().inject(Fault::on(Verb::List).resource(PODS).times(1).disconnect());
//! let pods: Api<Pod> = Api::all(sandbox.client());
//! assert!(pods.list(&ListParams::default()).await.is_err());
//! assert!(pods.list(&ListParams::default()).await.is_ok());
//! # }
//! ```

mod apply;
mod chance;
pub mod cluster;
mod decode;
mod defaults;
mod describe;
mod faults;
mod kinds;
mod listen;
mod object;
mod patch;
mod sandbox;
pub mod scenarios;
mod schema;
mod server;
mod service;
mod status;
mod store;
mod table;
mod validate;

// They are part of this crate's signatures.
pub use kcm_api::{ObjectKey, Resource};

pub use faults::{Cut, Fault};
pub use kinds::{CONFIG_MAPS, DEPLOYMENTS, EVENTS, LEASES, NAMESPACES, NODES, PODS, REPLICA_SETS, RESOURCE_QUOTAS};
pub use listen::{KubeconfigError, ListenError, ListenOptions, Listener};
pub use sandbox::manifests::{LoadErrors, SaveError};
pub use sandbox::{FaultControls, InjectedFault, Sandbox, SandboxOptions};
pub use server::admission::Attempt;
pub use server::subresource::ScalePaths;
pub use service::log::Request;
pub use service::request::{Target, Verb};
pub use service::{ConnectionLost, ResponseBody, SandboxService};
pub use status::{Cause, Details, FieldError, Status};
