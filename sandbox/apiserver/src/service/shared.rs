//! What handles, requests and streams share: the state behind one lock, bells, and the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_api::Resource;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::faults::Faults;
use crate::sandbox::SandboxOptions;
use crate::server::definitions::DEFINITIONS;
use crate::server::{Now, Server};
use crate::service::log::Log;

pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) faults: Faults,
    pub(crate) log: Log,
    /// Of each resource that was ever watched; the streams of its watches listen.
    bells: BTreeMap<Resource, watch::Sender<()>>,
}

/// Whom a change wakes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wakes {
    /// The streams of what was written.
    Concerned,
    AllStreams,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Rung after every change, for whoever waits for a version or follows everything.
    bell: watch::Sender<()>,
    started: Instant,
    start: Timestamp,
}

impl Shared {
    pub(crate) fn new(server: Server, options: &SandboxOptions) -> Self {
        let log = Log::new(options.request_log);
        let state = State { server, faults: Faults::default(), log, bells: BTreeMap::new() };
        Self { state: Mutex::new(state), bell: watch::Sender::new(()), started: Instant::now(), start: options.start }
    }

    pub(crate) fn now(&self) -> Now {
        let elapsed = self.started.elapsed();
        let time = self.start.checked_add(elapsed).unwrap_or(Timestamp::MAX);
        Now { elapsed, time }
    }

    /// The moment that lies `at` after the start.
    pub(crate) fn instant(&self, at: std::time::Duration) -> Instant {
        self.started + at
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes objects and wakes the streams of their resources.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change_and_wake(Wakes::Concerned, change)
    }

    /// Changes what streams go by, and wakes them all.
    pub(crate) fn change_rules<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change_and_wake(Wakes::AllStreams, change)
    }

    fn change_and_wake<T>(&self, wakes: Wakes, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = {
            let mut state = self.lock();
            let before = state.server.store.version();
            // What is due is gone before anything else is done.
            state.server.expire(self.now());
            let changed = change(&mut state);
            state.note_writes(before, wakes);
            changed
        };
        self.bell.send_replace(());
        changed
    }

    /// Removes what is due, for whoever only reads.
    pub(crate) fn expire(&self) {
        if self.lock().server.has_expired(self.now()) {
            self.change(|_| ());
        }
    }

    /// Listens to all changes.
    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }
}

impl State {
    /// Listens to the changes of a resource, and to the rules of all streams.
    pub(crate) fn listen(&mut self, resource: &Resource) -> watch::Receiver<()> {
        self.bells.entry(resource.clone()).or_default().subscribe()
    }

    /// How many streams of a resource are open.
    pub(crate) fn listeners(&self, resource: &Resource) -> usize {
        self.bells.get(resource).map_or(0, watch::Sender::receiver_count)
    }

    fn note_writes(&mut self, before: u64, mut wakes: Wakes) {
        let Self { server, faults, bells, .. } = self;
        let oldest = server.store.oldest();
        if before < oldest {
            // Some of the writes have left the window already: whoever missed them is cut off.
            wakes = Wakes::AllStreams;
        }
        for event in server.store.events_after(before.max(oldest)).into_iter().flatten() {
            faults.wrote(&event.resource, event.version, oldest);
            if event.resource == DEFINITIONS {
                // Streams end with their kind, objects or none.
                wakes = Wakes::AllStreams;
            }
            if let Some(bell) = bells.get(&event.resource) {
                bell.send_replace(());
            }
        }
        if wakes == Wakes::AllStreams {
            for bell in bells.values() {
                bell.send_replace(());
            }
        }
    }
}
