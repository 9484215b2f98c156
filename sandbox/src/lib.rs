//! A Kubernetes API server in this process, for tests.
//!
//! Everything that talks to a cluster is tried against it: an ordinary client sees the semantics of the real API
//! server, in milliseconds, on a clock that tests pause, and with faults where a test wants them.
//!
//! ```text
//! kube::Client ──▶ service ──▶ faults ──▶ request ──▶ server ──▶ storage     one lock, one version
//!        ▲        (tower)     (rules)    (parsed)    (pure)        │
//!        └─────────────────── stream ◀── watch (a cursor) ◀── window of events
//! ```
//!
//! # What is served
//!
//! [`PODS`], [`REPLICA_SETS`], [`DEPLOYMENTS`], [`NAMESPACES`], [`EVENTS`], [`CONFIG_MAPS`] and [`RESOURCE_QUOTAS`],
//! and whatever a test registers ([`Sandbox::register`]). The namespaces `default`, `kube-system`, `kube-public` and
//! `kube-node-lease` are there from the start; nothing is created in a namespace that is not.
//!
//! # Guarantees
//!
//! - One resource version counts all writes; each write takes the next one, and a write that changes nothing takes
//!   none. Lists show one version, pages of a list the same one.
//! - A list at a version and the watch from there lead to the state of any later list, whatever is selected. A
//!   version that has left the window is answered with 410: for a list as the answer, for a watch as an `ERROR` event
//!   within a stream of code 200, both as upstream does.
//! - Memory is bounded by the objects, the window of events and the last 20,000 requests. A watch holds a position in
//!   the window and a small batch; one that falls out of the window is cut off, and nobody waits for it.
//! - Nothing happens by itself: no controller, no node, no garbage collection. Finalizers, grace periods and
//!   terminating namespaces wait for whoever ends them.
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
//! - No server-side apply and no `managedFields`; no protobuf, no tables; no authentication.
//! - Validation and defaulting go as far as controllers notice; types of fields are not checked.
//! - Subresources are `status`, `binding` of pods and `finalize` of namespaces; no scale, no eviction.
//! - The window is one for all resources, not one for each.
//! - `$setElementOrder` of a strategic merge patch does not reorder; lists are in order of namespace and name, also
//!   where the real order of keys sorts `a-b/…` before `a/…`.
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

mod admission;
mod defaults;
mod delete;
mod discovery;
mod faults;
mod kinds;
mod log;
mod object;
mod patch;
mod pods;
mod random;
mod reads;
mod request;
mod sandbox;
mod selection;
mod server;
mod service;
mod shared;
mod status;
mod storage;
mod strategic;
mod stream;
mod validate;
mod watch;
mod writes;

pub use admission::Attempt;
pub use faults::{Cut, Fault};
pub use kinds::{CONFIG_MAPS, DEPLOYMENTS, EVENTS, NAMESPACES, PODS, REPLICA_SETS, RESOURCE_QUOTAS};
pub use log::Request;
pub use request::{Target, Verb};
pub use sandbox::{FaultControls, InjectedFault, Sandbox, SandboxOptions};
pub use service::{ConnectionLost, ResponseBody, SandboxService};
pub use status::{Cause, Details, FieldError, Status};
