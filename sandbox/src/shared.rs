//! What handles, requests and streams share: the state behind one lock, a bell, and the clock.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_api::Resource;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::faults::Faults;
use crate::log::Log;
use crate::server::{Now, Server};

pub(crate) struct State {
    pub(crate) server: Server,
    pub(crate) faults: Faults,
    pub(crate) log: Log,
    /// Open watches by resource.
    pub(crate) open: BTreeMap<Resource, usize>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Rung after every change that a stream or a waiting request could care for.
    bell: watch::Sender<()>,
    started: Instant,
    start: Timestamp,
}

impl Shared {
    pub(crate) fn new(server: Server, start: Timestamp) -> Self {
        let state = State { server, faults: Faults::default(), log: Log::default(), open: BTreeMap::new() };
        Self { state: Mutex::new(state), bell: watch::Sender::new(()), started: Instant::now(), start }
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

    /// Changes the state and wakes all streams.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = {
            let mut state = self.lock();
            let before = state.server.store.version();
            let changed = change(&mut state);
            state.note_writes(before);
            changed
        };
        self.bell.send_replace(());
        changed
    }

    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }
}

impl State {
    fn note_writes(&mut self, before: u64) {
        let Self { server, faults, .. } = self;
        let oldest = server.store.oldest();
        for event in server.store.events_after(before.max(oldest)).into_iter().flatten() {
            faults.wrote(&event.resource, event.version, oldest);
        }
    }
}
