//! The shared state of handles, requests and streams: one lock, the notifiers and the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_api::Resource;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::{ManualClock, SandboxClock};
use crate::faults::Faults;
use crate::kinds::CUSTOM_RESOURCE_DEFINITIONS;
use crate::options::SandboxOptions;
use crate::request::Now;
use crate::server::Server;
use crate::service::log::Log;

pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) faults: Faults,
    pub(crate) log: Log,
    /// One notifier per watched resource; the streams of its watches subscribe to it.
    notifiers: BTreeMap<Resource, watch::Sender<()>>,
}

/// The streams that a change notifies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notified {
    /// The streams of the written resources.
    Concerned,
    AllStreams,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Notifies subscribers of all changes, and requests that wait for a version.
    notifier: watch::Sender<()>,
    clock: SandboxClock,
    start: Timestamp,
}

impl Shared {
    pub(crate) fn new(server: Server, options: &SandboxOptions, clock: SandboxClock) -> Self {
        Self::of(server, Log::new(options.request_log), clock, options.start)
    }

    fn of(server: Server, log: Log, clock: SandboxClock, start: Timestamp) -> Self {
        let state = State { server, faults: Faults::default(), log, notifiers: BTreeMap::new() };
        Self { state: Mutex::new(state), notifier: watch::Sender::new(()), clock, start }
    }

    /// Copies objects, past events, kinds and hooks. Faults, logged requests and open watches stay behind.
    pub(crate) fn fork(&self, clock: ManualClock) -> Self {
        clock.advance_to(self.clock.elapsed());
        let state = self.lock();
        let (server, log) = (state.server.clone(), state.log.emptied());
        drop(state);
        Self::of(server, log, SandboxClock::manual(clock), self.start)
    }

    pub(crate) fn now(&self) -> Now {
        let elapsed = self.clock.elapsed();
        let time = self.start.checked_add(elapsed).unwrap_or(Timestamp::MAX);
        Now { elapsed, time }
    }

    /// Returns the instant `at` after the start.
    pub(crate) fn instant(&self, at: std::time::Duration) -> Instant {
        self.clock.instant(at)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes objects and notifies the streams of their resources.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change_and_notify(Notified::Concerned, change)
    }

    /// Changes kinds or faults, and notifies all streams.
    pub(crate) fn change_rules<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change_and_notify(Notified::AllStreams, change)
    }

    fn change_and_notify<T>(&self, notified: Notified, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = {
            let mut state = self.lock();
            let before = state.server.store.version();
            // Expired objects are removed before anything else.
            state.server.expire(self.now());
            let changed = change(&mut state);
            state.note_writes(before, notified);
            changed
        };
        self.notifier.send_replace(());
        changed
    }

    /// Removes expired objects before a read.
    pub(crate) fn expire(&self) {
        if self.lock().server.has_expired(self.now()) {
            self.change(|_| ());
        }
    }

    /// Returns a receiver of all changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.notifier.subscribe()
    }
}

impl State {
    /// Returns a receiver of the changes of a resource, and of kinds and faults.
    pub(crate) fn subscribe(&mut self, resource: &Resource) -> watch::Receiver<()> {
        self.notifiers.entry(resource.clone()).or_default().subscribe()
    }

    /// Returns the number of open streams of a resource.
    pub(crate) fn subscribers(&self, resource: &Resource) -> usize {
        self.notifiers.get(resource).map_or(0, watch::Sender::receiver_count)
    }

    fn note_writes(&mut self, before: u64, mut notified: Notified) {
        let Self { server, faults, notifiers, .. } = self;
        let oldest = server.store.oldest();
        if before < oldest {
            // Some of the writes are already older than the window: watches that missed them close.
            notified = Notified::AllStreams;
        }
        for event in server.store.events_after(before.max(oldest)).into_iter().flatten() {
            faults.wrote(&event.resource, event.version, oldest);
            if event.resource == CUSTOM_RESOURCE_DEFINITIONS {
                // Streams end with their kind, even without objects.
                notified = Notified::AllStreams;
            }
            if let Some(notifier) = notifiers.get(&event.resource) {
                notifier.send_replace(());
            }
        }
        if notified == Notified::AllStreams {
            for notifier in notifiers.values() {
                notifier.send_replace(());
            }
        }
    }
}
