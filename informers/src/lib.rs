//! Informers: list and watch, caches, indexes and the shared informer factory.
//!
//! An [`Informer`] caches the objects of one resource and notifies event handlers of changes. A [`Factory`] (client-go:
//! `SharedInformerFactory`) creates one informer per resource, view and list options, and runs them.
//!
//! ```text
//!               ┌ protocol ┐ next request             ┌ store: objects by key, indexes ───▶ readers
//!  API server ─▶│ reflector│── decoded objects ──▶ one│ event handlers: enqueue keys ─────▶ queues
//!               └──────────┘ (one task)           step│ last sync resource version ───────▶ waiters
//!                                                     └ progress hooks ───────────────────▶ pending writes
//! ```
//!
//! ```
//! use kcm_api::{KnownView, Uid, View};
//! use kcm_informers::{Change, Factory, Origin, HandlerOptions, ListOptions};
//!
//! fn wire<Pod: KnownView>(factory: &Factory, add: impl Fn(Uid) + Send + 'static) {
//!     let pods = factory.informer::<Pod>(ListOptions::default());
//!     let by_owner = pods.index("owner", |pod| pod.meta().controller().map(|owner| owner.uid.clone()));
//!     let options = HandlerOptions::named("replicaset-controller");
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
//! Each sentence is a test of the same name in `tests/it/contract/`.
//!
//! A **cache**
//! - *ends up with what the server holds*, in whatever order connections break;
//! - *shows a list at once, and only when it is complete*;
//! - *lets other tasks run while a long list is committed, and then applies what came after it*: readers see the old
//!   contents or the new ones, and the version moves after the last event handler;
//! - *is in step with its indexes*: an object is visible in both or in neither;
//! - *gives readers what does not change under them*: they get `Arc`s, and no lock is held while they decide;
//! - *lists in the order of keys*, as do its indexes;
//! - *shares an index among users of one name and function, and drops it with the last*.
//!
//! **Event handlers**
//! - *are notified of each change in order*: the order in which the server made them;
//! - *are notified one after the other in the order of registration*, inline, so no backlog of changes can grow;
//! - *that are added late first get what the cache holds*, with [`Origin::Initial`];
//! - *that are added late miss no change and get none twice*, on whatever thread they are added;
//! - *that are added late to a large cache get each object before its changes*: the cache is shown in slices, and a change
//!   goes before the objects that are left;
//! - *that are notified again get every object as added, and changes go first*;
//! - *see a recreated object as a deletion and an addition*: old and new always have one uid;
//! - *are not notified of a version that the cache holds*;
//! - *are notified of a new list only where it differs, and the final state of deleted objects is unknown*: first of
//!   deletions, then of additions and updates, by key;
//! - *with a resync period are notified of every object again, and others are not*, with [`Origin::Resync`], old equal
//!   to new;
//! - *of different phases are not resynced at the same moment*;
//! - *that panic are notified of that change again, and hold up no other handler*: after 1 s doubling to 5 minutes,
//!   before later changes of the object;
//! - *that panic for an update get its old state when the object is deleted*, which may name another owner. Of a
//!   deleted object they are notified for about eight minutes;
//! - *that are removed are not notified any more*;
//! - *are removed with the registrations of their user*.
//!
//! The **last sync resource version**
//! - *moves after event handlers and before hooks and waiters*: cache and indexes, event handlers, last sync resource
//!   version, hooks and waiters, in this order, for each event and each list;
//! - *is unset before the first list, then follows list, events and bookmarks*. It goes back only if the server does,
//!   for example after a restore from a backup;
//! - *wakes a waiter with the event that reaches its version*;
//! - *does not block on a version that does not compare*;
//! - *calls no hook whose registration was dropped*;
//! - *passes an object that cannot be decoded*, by the version in its metadata: who has written such an object waits no
//!   longer for that than for any other.
//!
//! An informer has **synced** once its cache has held all objects. Its sync
//! - *does not wait for objects that cannot be decoded*;
//! - *reports why it is missing, and is tried again*, with back-off and for ever, also when forbidden or not found;
//! - *of one kind does not hold up another*;
//! - *stays through later failures*, as does the cache, until a new list is complete.
//!
//! An object that **cannot be decoded** is nothing to decide by, and keeps nothing else from being decided. A controller that
//! does not see an object may create it twice, so it is not in the cache, and yet known
//! ([`Informer::undecodable`](crate::Informer::undecodable)). Such an object
//! - *is known by its metadata*, or by its name if the metadata cannot be decoded either, or else is only counted;
//! - *leaves the cache as undecodable and comes back as if added*: [`Change::Undecodable`], which is no deletion, and its
//!   end is not reported to hooks;
//! - *that was in the cache is notified as deleted when it is deleted*, with its last state that could be decoded;
//! - *is found by a lookup and is not absent* ([`Informer::lookup`](crate::Informer::lookup));
//! - *may be one for which an index function panics*: it would be missing from the index only;
//! - *is reported once for each error*: a log line, a count, and the status, which names it;
//! - *is forgotten when it is deleted or gone from a list*;
//! - *holds up no other object*, not even if its event is too long or malformed. Such an object is only counted.
//!
//! In **trouble**
//! - *a server without streaming lists is listed by page*, until an hour has passed or the connection was lost;
//! - *a streaming list that fails twice is tried by page*;
//! - *a page that is too large is requested with fewer objects*: more than 32 MB are not held;
//! - *an event of an unknown type is ignored*;
//! - *a watch that is denied keeps its version*: 401, 403 and 404 lead to no new list;
//! - *a page that has expired restarts the list*;
//! - *a watch that ends or breaks is resumed*, at once, if it lasted;
//! - *a version that is gone leads to a new list*, at once, unless that has just happened;
//! - *a quiet watch without bookmarks is replaced and does not make the cache stale*, unless the next is not accepted;
//! - *a silent watch is replaced*; so many in a row lead to a new list ([`protocol::Protocol::DOUBTS`]);
//! - *a request without a response is repeated*;
//! - *failures are retried at growing intervals*, 800 ms to 30 s, stretched by up to as much again;
//! - *a watch that is served resets the interval*: an event or a bookmark, or a second of being open;
//! - *nothing is requested while the server is unreachable*, see [`Connection`];
//! - *an outage of whatever length is over for all kinds within two seconds*: a watch resumes from its resource
//!   version, a list begins again;
//! - *storage that has gone back leads to a new list*: after an outage, or after a
//!   [suspicion](Cache::suspect_rollback), of each cache that is ahead of it;
//! - *a panic in the informer leads to a new list*.
//!
//! A resource that **disappears**, for example because its CRD is deleted: the response to a list is 404, and discovery
//! does not have it,
//! - *empties its cache and notifies of deletions*, whose final state is unknown. The status says why;
//! - *is requested no more until it appears, and then is listed as if for the first time*;
//! - *is requested after an outage if it appears during the outage*;
//! - *does so only if both lists and discovery lack it*.
//!
//! A **factory**
//! - *shares one watch among users of the same* resource, view and list options;
//! - *watches another view or list options again, and logs that*;
//! - *serves metadata from a cache that holds the objects*, of whatever view, with the same or wider list options;
//! - *watches the metadata of other kinds alone*, as protobuf if the server supports it;
//! - *starts once, and starts late informers at once*;
//! - *stops an informer when its last user ends, and frees its memory*; users are counted by their [`Registrations`];
//! - *shuts down every informer*, and returns when none runs.
//!
//! A **multi-namespace informer**, [`MultiNamespaceInformer`],
//! - *reads the objects of all its namespaces in the order of keys*, as do its indexes;
//! - *has synced once each of its namespaces has*;
//! - *shares the watch of each namespace with every other reader of it*.
//!
//! # What it costs
//!
//! One more object: itself in an `Arc`, and 20 to 30 bytes. One more index: 8 bytes per object and entry, and per
//! distinct key the key and 24 bytes. One more watch: a task of about 2 KB, what the transport needs for a stream, and
//! up to 16 KiB of line buffer, if events span chunks. A new list keeps the objects that have not changed; it needs 8
//! bytes for each, not twice the cache; if more than a thousand objects differ, sets and indexes exist twice for a moment.
//! Listing by page needs the body of one page at a time: 500 objects, and at most 32 MB.
//!
//! # What it does not do
//!
//! It writes nothing, and retries no requests but its own. It keeps no history: a later state of an object may replace
//! one of which no handler was notified. Items of a list by page carry neither `apiVersion` nor `kind`.

mod availability;
mod backoff;
mod cache;
mod change;
mod commit;
mod connection;
mod currency;
mod decode;
mod envelope;
mod error_chain;
mod event_handlers;
mod factory;
mod failure;
pub mod frames;
mod http_exchange;
mod informer;
mod jitter;
mod label_index;
mod last_states;
mod list_options;
mod lookup;
mod metadata_informer;
mod metrics;
mod missed_changes;
mod moments;
mod multi_namespace;
mod object_meta;
mod panic_message;
mod passes;
mod progress_hooks;
pub mod protocol;
mod reflector;
mod reflector_store;
mod registrations;
mod request;
mod rollback;
mod shared_informer;
mod status;
mod store;
mod undecodable;

pub use backoff::Backoff;
pub use cache::{Cache, ObjectState};
pub use change::{Change, Origin};
pub use connection::{
    Connection, ConnectionChange, ConnectionChanges, ConnectionMonitor, ConnectionStatus, PROBE_GAP, ProbePath,
    Reachability, is_refused_by_authorizer, is_storage_failure, may_be_outage,
};
pub use currency::{Evidence, HandedOver, LookAhead};
pub use envelope::{Event, EventError, EventKind, Object};
pub use event_handlers::{HandlerOptions, HandlerRegistration};
pub use factory::{CurrentCache, Factory, FactoryOptions};
pub use informer::Informer;
pub use label_index::{LabelIndex, label_key};
pub use list_options::ListOptions;
pub use lookup::Lookup;
pub use metadata_informer::{MetadataChange, MetadataInformer};
pub use metrics::{Metrics, MetricsOf, NoMetrics};
pub use moments::{Moment, Moments};
pub use multi_namespace::{MultiNamespaceIndex, MultiNamespaceInformer};
pub use object_meta::ObjectMeta;
pub use panic_message::panic_message;
pub use progress_hooks::{HookRegistration, Progress, ProgressHook};
pub use registrations::Registrations;
pub use status::{InformerStatus, Phase};
pub use store::{Index, IndexPanicked, Put, Store};
pub use undecodable::UndecodableObject;
