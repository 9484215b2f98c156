//! The start of a process, and its wall clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use kcm_framework::Stop;
use kcm_framework::clock::Clock;
use kcm_sandbox_apiserver::{ManualClock, Sandbox};
use kcm_testing::PreparedManager;

use crate::gate::Gate;
use crate::log::Pulse;
use crate::process::Process;

/// The wall clock of processes: the time of the world, and the seconds by which it is wrong.
#[derive(Debug, Clone)]
pub(super) struct WallClock {
    start: Timestamp,
    clock: ManualClock,
    shift: Arc<AtomicI64>,
}

impl WallClock {
    pub(super) fn of(sandbox: &Sandbox, clock: &ManualClock) -> Self {
        let start = sandbox.now().checked_sub(clock.elapsed()).unwrap_or(Timestamp::MIN);
        Self { start, clock: clock.clone(), shift: Arc::default() }
    }

    pub(super) fn jump(&self, seconds: i64) {
        self.shift.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let shift = SignedDuration::from_secs(self.shift.load(Ordering::Relaxed));
        let now = self.start.checked_add(self.clock.elapsed()).and_then(|now| now.checked_add(shift));
        now.unwrap_or(Timestamp::MAX)
    }
}

/// Starts a process with a manager.
pub(super) fn launch(manager: &PreparedManager, wall: &WallClock, gate: &Gate, number: u32, pulse: &Pulse) -> Process {
    let mut process = Process::new(pulse.clone()).expect("the operating system must grant a runtime");
    let builder = manager.manager(wall.clone(), u64::from(number));
    process.start(|| {
        let manager = builder.build(gate.client(), "sandbox:443");
        async move {
            if let Err(error) = manager.run(Stop::default()).await {
                tracing::error!(%error, "The manager ended");
            }
        }
    });
    process
}
