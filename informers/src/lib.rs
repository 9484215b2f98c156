//! List and watch, caches, indexes and the shared factory under every controller.
//!
//! An [`Informer`] holds the objects of one resource as the API server last told of them, and tells its subscribers
//! what changes. A [`Factory`] hands informers out, one for all who ask for the same, and runs them.
//!
//! ```text
//!               ┌ protocol ┐ what to ask, when        ┌ store: objects by key, indexes ──▶ readers
//!  API server ─▶│ reflector│── decoded objects ──▶ one│ subscribers: compute keys ───────▶ queues
//!               └──────────┘ (one task)           step│ observed ────────────────────────▶ waiters
//!                                                     └ hooks ───────────────────────────▶ own writes settle
//! ```
//!
//! ```
//! use kcm_api::{KnownView, Uid, View};
//! use kcm_informers::{Change, Factory, Origin, ListOptions, HandlerOptions};
//!
//! fn wire<Pod: KnownView>(factory: &Factory, add: impl Fn(Uid) + Send + 'static) {
//!     let pods = factory.informer::<Pod>(ListOptions::default());
//!     let by_owner = pods.index("owner", |pod| pod.meta().controller().map(|owner| owner.uid.clone()));
//!     let subscription = HandlerOptions { name: "replicaset-controller", resync_period: None };
//!     pods.add_event_handler(options, move |change: &Change<Pod>, _origin: Origin| {
//!         if let Some(owner) = change.object().meta().controller() {
//!             add(owner.uid.clone());
//!         }
//!     });
//!     # let _ = by_owner.get(&Uid::default());
//! }
//! ```
//!
//! # Contract
//!
//! Each sentence is a test of the same name in `tests/contract/`.
//!
//! A **cache**
//! - *ends up with what the server holds*, in whatever order connections break;
//! - *shows a list at once, and only when it is complete*;
//! - *is in step with its indexes*: who sees an object in one sees it in the other;
//! - *gives readers what does not change under them*: they get `Arc`s, and no lock is held while they decide;
//! - *lists in the order of keys*, as do its indexes.
//!
//! **EventHandlers**
//! - *are told of each change in order*: the order in which the server made them;
//! - *are told one after the other, in the order in which they came*, inline, so no backlog of changes can grow;
//! - *that come late first get what the cache holds*, marked [`Origin::Initial`];
//! - *that come late miss nothing and hear nothing twice*, from whatever thread they come;
//! - *see an object made again under its name as a removal and an addition*: old and new always have one uid;
//! - *are not told of a version that the cache holds*;
//! - *are told of a new list only where it differs, and what vanished is uncertain*: first what vanished, then what was
//!   added or updated, by key;
//! - *with a period are told of everything again, and others are not*, marked [`Origin::Resync`], old equal to new;
//! - *that panic lose that change, and nobody else loses anything*;
//! - *that unsubscribe hear nothing more*.
//!
//! What has been **observed**
//! - *moves after subscribers were told, and before hooks and waiters hear of it*: cache and indexes, subscribers,
//!   `observed`, hooks and waiters, in this order, for each event and each list;
//! - *is unset before the first list, then follows list, events and bookmarks*. It goes back only where the server does,
//!   as one restored from a backup;
//! - *wakes a waiter with the event that gets there*;
//! - *does not block on a version that does not compare*;
//! - *does not pass an object that cannot be decoded*, until that object is read, deleted, or gone from a list. Its old
//!   state stays, all others go on. Otherwise a controller that waits for its own write, and cannot see it, would write
//!   again and again.
//!
//! To **sync** is to have held everything once. It
//! - *waits for objects of the first list that cannot be decoded*: a controller that does not see what exists makes it
//!   twice. The status names them;
//! - *says why it has not come, and is tried again*, with back-off and for ever, also when forbidden or not found;
//! - *of one kind does not hold up another*;
//! - *stays through later failures*, as does the cache, until a new list is complete.
//!
//! In **trouble**
//! - *a server without streaming lists is listed by page*, from then on;
//! - *a page that has expired restarts the list*;
//! - *a watch that ends or breaks goes on where it was*, at once, if it lived;
//! - *a version that is gone leads to a new list*;
//! - *a silent watch is replaced*; so many in a row lead to a new list ([`protocol::Protocol::DOUBTS`]);
//! - *a server that does not answer is asked again*;
//! - *failures are retried at growing intervals*, 800 ms to 30 s, stretched by up to as much again;
//! - *a panic in the informer costs a new list*.
//!
//! A **factory**
//! - *shares one watch among those who ask for the same* resource, view and list options;
//! - *watches another view or list options again, and says so*;
//! - *starts once, and starts late informers at once*;
//! - *stops and forgets a resource*, for kinds that come and go;
//! - *shuts down every informer*, and returns when none runs.
//!
//! # What it costs
//!
//! One more object: itself in an `Arc`, and 10 to 20 bytes. One more index: 8 bytes per object and entry, and per
//! distinct key the key and 24 bytes. One more watch: a task of about 2 KB, what the transport needs for a stream, and
//! up to 16 KiB of line buffer, if events span chunks. A new list keeps the objects that have not changed; it needs 8
//! bytes for each, not twice the cache. Listing by page needs the text of one page, 500 objects, at a time.
//!
//! # What it does not do
//!
//! It decides nothing, writes nothing, and retries no request of anybody else. It keeps no history: a subscriber that
//! must not miss a state has come to the wrong place, a later state may replace one that was never told. Items of a
//! list by page carry neither `apiVersion` nor `kind`; a view that wants them knows them.

mod backoff;
mod cache;
mod change;
mod envelope;
mod event_handlers;
mod factory;
mod failure;
pub mod frames;
mod http_exchange;
mod informer;
mod jitter;
mod list_options;
mod metrics;
mod panic_message;
pub mod protocol;
mod reflector;
mod registrations;
mod request;
mod shared_informer;
mod status;
mod store;

pub use backoff::Backoff;
pub use cache::{Cache, ObjectState, Progress, ProgressHook};
pub use change::{Change, Origin};
pub use envelope::{Event, EventKind, Object};
pub use event_handlers::{HandlerOptions, HandlerRegistration};
pub use factory::{Factory, FactoryOptions};
pub use informer::Informer;
pub use list_options::ListOptions;
pub use metrics::{Metrics, MetricsOf, NoMetrics};
pub use panic_message::panic_message;
pub use registrations::HandlerRegistrations;
pub use status::{InformerStatus, Phase};
pub use store::{Index, Put, Store};
