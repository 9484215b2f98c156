//! The framework of controllers: descriptors, informers, work queues, reconcile loops, and the manager that runs them.
//!
//! A controller is a constant, [`ControllerDescriptor`], registered with `inventory::submit!`. Its [`InitFunc`] takes
//! informers and a work queue from the [`ControllerContext`] and returns a set of loops, [`Loops`]. A [`Manager`]
//! starts the enabled controllers of a [`Registry`] in order, keeps them running, and stops them in reverse.
//!
//! ```text
//! API server ──watch──▶ informers ──Change──▶ handler ────keys──▶ workqueue ──key──▶ Reconcile
//!      ▲                                       (pure)                                     │
//!      └───────────────────────── Session: every write is pending ◀───────────────────────┘
//! ```
//!
//! # Guarantees
//!
//! - **One at a time.** A key is never reconciled twice at once; a key added meanwhile is reconciled again after.
//! - **Read your own writes.** A key is not reconciled again before the caches of its loop show every write of its last
//!   reconcile; see [`consistency`]. Controllers keep no expectations.
//! - **No write twice because a response was lost.** A write whose response is lost parks its key until a live list,
//!   begun after the request can no longer take effect, shows its outcome. An idempotent write whose connection broke
//!   is repeated, which mostly shows the outcome at once. [`consistency`] explains the meaning of each response.
//! - **No key is dropped.** A failing key stays at its longest back-off. A panic is caught, counted and logged with its
//!   key, and counts as a failure.
//! - **One bad object stops no other.** A key whose object, or an object that it controls, cannot be decoded is not
//!   reconciled until it can be; it is logged once. All other keys are reconciled. An object that a reconcile looks up is
//!   [found, absent or undecodable](kcm_informers::Lookup), and [`Session::requeue_when_decodable`] waits for it.
//! - **An outage ends for everybody at once.** Whether the API server, and etcd behind it, can be reached is a state of the
//!   connection, which one probe watches; see [`Connection`](kcm_informers::Connection). While it is unreachable, keys,
//!   informers, live checks and events wait. This does not count as a failure of a key, and all continue within a
//!   second of the server's return.
//! - **Isolation.** A loop or an `InitFunc` that fails or panics is started again with back-off, and no other
//!   controller is affected. An `InitFunc` that hangs holds up the others for [`INIT_PATIENCE`] at most. A task of the
//!   manager that panics is logged, counted and started again.
//! - **Resources come and go.** A controller whose resources are not served is initialized when they are, stops while a
//!   resource that it reads is not served, and leaves nothing behind: no event handler, task, or informer without
//!   another user.
//! - **A running manager changes.** Through its [`ManagerHandle`], controllers are added and removed, loops get more or
//!   fewer workers, stop and start again while informers stay, and writes are held back; it shows the state of each
//!   controller and loop.
//! - **Order.** Informers start after every `InitFunc` has run; no loop takes a key before the caches that it reads
//!   have synced, and after a change of the leader show all writes of the last leader; the loops are the first to stop.
//! - **Only what is read is decoded.** A part of a view is decoded if an enabled controller
//!   [needs](ControllerDescriptor::needs) it. It is read through [`ControllerContext::part`] only, which fails at start
//!   if the need is not declared.
//!
//! `tests/it/guarantees/` holds each of them, one test a claim.
//!
//! # A plugin in a crate of its own
//!
//! Depend on this crate alone: what a controller needs of the crates beneath is re-exported as [`api`], [`informers`],
//! [`config`] and [`workqueue`]. A host **names** the plugin, as in `use my_controller as _;`: the linker drops a
//! dependency that is never named, and a crate that is not linked registers no controller. `docs/plugins.md` is the
//! guide.
//!
//! This crate does not parse command lines, set up logs or serve HTTP: the host, `kcm-controller-manager`, does.

mod activity;
pub mod consistency;
mod control_loop;
mod controller;
pub mod discovery;
pub mod events;
pub mod explain;
mod first_failure;
mod live_settings;
mod loop_builder;
mod manager;
pub mod metrics;
pub mod ownership;
mod panics;
mod progress;
mod queue_key;
mod reconcile;
mod scale_client;
mod supervise;
mod takeover;
mod user_agent;

pub use async_trait::async_trait;
pub use futures::future::BoxFuture;
pub use http;
pub use inventory;
pub use kcm_api as api;
pub use kcm_client as client;
pub use kcm_client::{BoxError, clock, error_chain, x509};
pub use kcm_config as config;
pub use kcm_informers as informers;
pub use kcm_workqueue as workqueue;
pub use prometheus_client;

pub use control_loop::Loop;
pub use controller::{
    AbsentController, AsyncInitFunc, ControllerContext, ControllerDescriptor, DebugPage, Extensions, HealthCheck,
    InitFunc, Loops, Registry, RegistryError, Selection, SelectionError, StartGroup,
};
pub use events::Recorder;
pub use loop_builder::{ControlLoopBuilder, Enqueue, LoopWorkers, Source};
pub use manager::{
    API_SERVER_PATIENCE, Manager, ManagerBuilder, ManagerError, ManagerHandle, Stage, Stop, UnusableConnection,
};
pub use metrics::{ExpositionOptions, Format, Metrics, NotAMetricLabel};
pub use panics::TaskPanics;
pub use progress::{HeldKeys, STALLED_AFTER, Stall, Step, Steps};
pub use queue_key::QueueKey;
pub use reconcile::{
    Class, Delete, NameGenerator, ObjectSource, Reconcile, ReconcileError, ReconcileObject, Session, SessionOf,
    SharedReads,
};
pub use scale_client::{ScaleClient, ScaleError};
pub use supervise::{ControllerState, ControllerStatus, GRACE, INIT_PATIENCE, LoopState, LoopStatus};
pub use takeover::{CacheVersions, Handover, Predecessor};
pub use user_agent::user_agent;
