//! A Kubernetes API server in the process of the test.
//!
//! An ordinary client sees the semantics of kube-apiserver: validation, defaults, patches, server-side apply, lists,
//! watches, tables, discovery. It responds in milliseconds, on a clock that tests pause, and with injected faults.
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
//! - A list at a version and the watch from that version lead to the state of any later list, with any selector. A
//!   version older than the window gets 410 (Gone): for a list as the response, for a watch as an `ERROR` event in a
//!   stream of code 200, both as upstream.
//! - Memory is bounded by the objects, the window of events ([`SandboxOptions::watch_window`], and at most 256 MB of
//!   objects) and the logged requests ([`SandboxOptions::request_log`]). Objects and events are kept
//!   as the JSON that lists and watches send, written once: a running pod with its managed fields is 4 kB, and so is
//!   an event of it in the window. 10,000 of both and 100 watches take less than 250 MB, controllers included (208 MB
//!   were measured), and a pod's whole start less than 2 ms of one processor.
//! - A watch holds a position in the window and a small batch, and sleeps until its resource changes. A watch
//!   that falls behind the window is closed; a slow watch never blocks a write. A list and the initial events of a
//!   watch hold the object versions that they return until they are sent.
//! - Nothing changes without a request, except that events expire an hour after their last write. There are no nodes,
//!   no controllers and no garbage collection; finalizers, grace periods and terminating namespaces wait for the
//!   clients that end them.
//! - Responses are deterministic for a seed and an order of requests; times are [`SandboxOptions::start`] plus the time
//!   on tokio's clock.
//! - A request whose future is dropped while a fault delays it has no effect.
//!
//! # Faults
//!
//! [`Fault`] fails, delays, stalls or disconnects requests, or drops their responses; [`FaultControls`] holds, delays,
//! cuts and silences watches, drops events and serves stale lists. Simulate a missing permission with a fault that
//! returns [`Status::forbidden`], and an exhausted quota with a hook of [`Sandbox::admit`].
//!
//! # The feature `kubectl`
//!
//! Objects printed as tables (`kubectl get`) and OpenAPI v3 documents (`kubectl explain`, and its validation). Tests of
//! controllers need neither, so it is off by default: a table is then an unsupported form, and `/openapi/v3` is not found.
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
mod clock;
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
#[cfg_attr(not(feature = "kubectl"), path = "no_table.rs")]
mod table;
mod validate;

// Types in the public signatures of this crate.
pub use kcm_api::{ObjectKey, Resource};

pub use clock::ManualClock;
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
pub use server::usage::{USAGE_CPU, USAGE_MEMORY};
pub use service::exchange::{Exchanged, LineKind, OpenWatch, WatchLine, WatchStep};
pub use service::log::Request;
pub use service::{ConnectionLost, ResponseBody, SandboxService, status_response};
pub use status::{Cause, Details, FieldError, Status};
