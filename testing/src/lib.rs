//! A test environment for controllers: an API server in the process, a manager with chosen controllers on it, and time
//! that the test advances.
//!
//! It corresponds to controller-runtime's envtest, but runs in the process of the test, in milliseconds and without
//! binaries of kube-apiserver and etcd. Unlike envtest it controls clock, connections and processes: an hour passes
//! immediately, a response is dropped on request, and a manager is killed after each write.
//!
//! ```text
//! TestEnvironment ──start──▶ TestCluster ──▶ Manager (the chosen controllers) ──▶ API server
//!   controllers                 │  eventually, consistently, advance                 ▲
//!   settings, objects           └──────────── sandbox(): objects, faults ────────────┘
//! ```
//!
//! # Guarantees
//!
//! - With `#[tokio::test(start_paused = true)]` a test takes no real time: tokio advances the clock when every task is
//!   idle. The same seed gives the same run.
//! - The API server behaves as kube-apiserver: the scenarios of `sandbox/conformance` pass on both, except for the
//!   stated differences.
//! - **Logged errors fail the test.** A caught panic, a loop that fails, a forbidden request: everything that the
//!   manager logs as an error fails the test when the [`TestCluster`] is dropped, unless the test allows it with
//!   [`TestEnvironment::allow_error`].
//! - Dropping the [`TestCluster`] stops manager and API server.
//!
//! # A first test
//!
//! The controller under test labels every namespace. A test creates objects through [`TestCluster::sandbox`], waits
//! with [`eventually`](TestCluster::eventually) and asserts with [`consistently`](TestCluster::consistently):
//!
//! ```
//! # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/greeter/mod.rs")); }
//! # use greeter::GREETER;
//! use std::time::Duration;
//!
//! use kcm_testing::TestEnvironment;
//! use kcm_testing::sandbox::{NAMESPACES, ObjectKey};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let cluster = TestEnvironment::new([GREETER]).start().await;
//! cluster.sandbox().create_namespace("shop").expect("the name is free");
//! let shop = ObjectKey::cluster_scoped("shop");
//! cluster
//!     .eventually("the new namespace is greeted", |sandbox| {
//!         sandbox.get(&NAMESPACES, &shop).is_some_and(|shop| shop["metadata"]["labels"]["greeting"] == "hello")
//!     })
//!     .await;
//! # }
//! ```
//!
//! The example runs on real time; a test pauses it. [`watches`](TestCluster::watches) waits until the manager watches
//! what the test writes next, [`advance`](TestCluster::advance) lets time pass, [`settle`](TestCluster::settle) half a
//! second of it. [`requests_of`](TestCluster::requests_of) returns the requests of one controller,
//! [`writes_of`](TestCluster::writes_of) those of them that write, and [`events_of`](TestCluster::events_of) its events.
//! A test starts at [`START`].
//!
//! # Faults
//!
//! `cluster.sandbox().faults()` rejects, delays and drops requests, and holds or ends watches; see
//! [`sandbox::Fault`] and [`sandbox::FaultControls`]. Faults that must be there from the start are injected in
//! [`TestEnvironment::prepare`]. A controller must end in the same state under each of the [`passing_faults`] as without
//! them.
//!
//! # A kill after each write
//!
//! A manager can die between any two writes, and the next one starts from what the API server stores. A scenario that
//! holds under [`kill_after_each_write`] holds wherever the manager dies: the scenario runs once to count the
//! writes, and then once for each of them, with the manager killed after that write has taken effect and before its
//! response arrives.
//!
//! ```
//! # mod greeter { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/greeter/mod.rs")); }
//! # use greeter::GREETER;
//! use kcm_testing::sandbox::NAMESPACES;
//! use kcm_testing::{TestEnvironment, kill_after_each_write};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let writes = kill_after_each_write(
//!     || TestEnvironment::new([GREETER]),
//!     async |cluster| {
//!         let greeted = |namespace: &serde_json::Value| namespace["metadata"]["labels"]["greeting"] == "hello";
//!         cluster.eventually("all are greeted", |sandbox| sandbox.list(&NAMESPACES, None).iter().all(greeted)).await;
//!     },
//! )
//! .await;
//! assert_eq!(writes, 4, "one for each namespace of a new cluster");
//! # }
//! ```
//!
//! # What it does not do
//!
//! Only the chosen controllers run: no scheduler, no kubelet, no garbage collector. A test writes what these
//! would write, or starts the cluster of `kcm-sandbox-cluster` on the same API server.

mod clock;
mod cluster;
mod environment;
mod error_log;
mod faults;
mod kill;
mod manager_client;
mod prepared;

/// The in-process API server: `Sandbox`, its options and faults, and the built-in resources.
pub use kcm_sandbox_apiserver as sandbox;

pub use cluster::TestCluster;
pub use environment::{START, TestEnvironment};
pub use faults::passing_faults;
pub use kill::kill_after_each_write;
pub use prepared::{PreparedManager, discover};
