//! A Kubernetes API server in the test's own process.
//!
//! An ordinary client sees the semantics of kube-apiserver: validation, defaults, patches, server-side apply, lists,
//! watches, tables, discovery. It answers in milliseconds, on a clock that tests pause, and with faults where a test
//! injects them.
//!
//! ```text
//! kube::Client ──▶ service ──▶ request ──▶ faults ──▶ server ──▶ storage     one lock, one resource version
//!        ▲        (tower)     (parsed)    (rules)    (pure)    ▲   │
//!        └─────────────────── stream ◀── watch (a cursor) ◀────┼── window of events
//!                                                              │
//!                                   direct: a client without HTTP, for simulated components
//! ```
//!
//! Three crates build on it: `kcm-sandbox-listener` serves it over HTTPS, `kcm-sandbox-cluster` adds nodes, a
//! scheduler and kubelets, and `kcm-sandbox-conformance` compares it with kube-apiserver.
//!
//! # What is served
//!
//! Every built-in resource in its preferred version, the resources of custom resource definitions, and the resources
//! that a test registers ([`Sandbox::register`]). The namespaces `default`, `kube-system`, `kube-public` and
//! `kube-node-lease` exist from the start; an object cannot be created in a namespace that does not exist.
//!
//! # Guarantees
//!
//! - One resource version counts all writes; each write takes the next one, and a write that changes nothing takes
//!   none. Lists show one version, pages of a list the same one.
//! - A list at a version and the watch from there lead to the state of any later list, with any selector. A
//!   version that has left the window is answered with 410: for a list as the answer, for a watch as an `ERROR` event
//!   within a stream of code 200, both as upstream does.
//! - Memory is bounded by the objects, the window of events ([`SandboxOptions::watch_window`], and 256 MB of objects at
//!   most) and the requests that are kept ([`SandboxOptions::request_log`]). Objects and events are kept
//!   as the JSON that lists and watches send, written once: a running pod with its managed fields is 4 kB, and so is
//!   an event of it in the window. 10,000 of both and 100 watches take less than 250 MB, controllers included (208 MB
//!   were measured), and a pod's whole start less than 2 ms of one processor.
//! - A watch holds a position in the window and a small batch, and sleeps until its resource changes. A watch
//!   that has missed an event that left the window is closed; a slow watch never blocks a write. A list and the first
//!   events of a watch hold the versions that they show until they are sent.
//! - Nothing changes without a request, except that events expire an hour after their last write. There are no nodes,
//!   no controllers and no garbage collection; finalizers, grace periods and terminating namespaces wait for the
//!   clients that end them.
//! - The seed and the order of requests decide everything; times come from tokio's clock, on top of
//!   [`SandboxOptions::start`].
//! - A request whose future is dropped while a fault delays it has no effect.
//!
//! # Faults
//!
//! [`Fault`] fails, delays, stalls or disconnects requests, or loses their answers; [`FaultControls`] holds, delays,
//! cuts and silences watches, drops events and serves stale lists. A missing permission is a fault that answers
//! [`Status::forbidden`]; an exhausted quota is a hook of [`Sandbox::admit`].
//!
//! # Differences from kube-apiserver
//!
//! `kcm_sandbox_conformance::differences` lists them, and its rows hold on the sandbox and on kube-apiserver alike.
//!
//! # Examples
//!
//! ```
//! use kcm_sandbox_apiserver::{Fault, PODS, Sandbox, Verb};
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
mod decode;
mod defaults;
mod describe;
pub mod direct;
mod event_view;
mod faults;
pub mod json;
mod kinds;
mod media_type;
mod options;
mod patch;
mod quantity;
pub mod random;
mod request;
mod sandbox;
mod schema;
mod selection;
mod server;
mod service;
mod status;
mod store;
mod table;
mod validate;

// They are part of this crate's signatures.
pub use kcm_api::{ObjectKey, Resource};

pub use faults::{Cut, Fault};
pub use kinds::{
    CONFIG_MAPS, DEPLOYMENTS, EVENTS, LEASES, NAMESPACES, NODES, PODS, REPLICA_SETS, RESOURCE_QUOTAS, ScalePaths,
    not_served,
};
pub use options::SandboxOptions;
pub use request::{Target, Verb};
pub use sandbox::Sandbox;
pub use sandbox::fault_controls::{FaultControls, InjectedFault};
pub use sandbox::manifests::load::LoadErrors;
pub use sandbox::manifests::save::SaveError;
pub use server::admission::Attempt;
pub use service::log::Request;
pub use service::{ConnectionLost, ResponseBody, SandboxService, status_response};
pub use status::{Cause, Details, FieldError, Status};
