//! What operators ask of all controllers while the manager runs.

use std::time::Duration;

use tokio::sync::watch;

use crate::controller::{ControllerDescriptor, Selection};

/// The controls of a manager, which supervisors follow.
pub(crate) struct Controls {
    selection: watch::Sender<Selection>,
    loops: watch::Sender<Loops>,
    /// How many controllers run their loops.
    active: watch::Sender<usize>,
}

/// Whether loops may run.
#[derive(Debug, Clone, Copy)]
enum Loops {
    Run,
    Stop { grace: Duration },
}

/// A controller that runs its loops, until it is dropped.
pub(super) struct Active<'a>(&'a Controls);

impl Controls {
    pub(crate) fn new(selection: Selection) -> Self {
        let (selection, loops, active) =
            (watch::Sender::new(selection), watch::Sender::new(Loops::Run), watch::Sender::new(0));
        Self { selection, loops, active }
    }

    pub(crate) fn select(&self, selection: Selection) {
        self.selection.send_replace(selection);
    }

    pub(crate) fn start_loops(&self) {
        self.loops.send_replace(Loops::Run);
    }

    /// Asks all loops to stop, and waits until they have.
    pub(crate) async fn stop_loops(&self, grace: Duration) {
        self.loops.send_replace(Loops::Stop { grace });
        wait(&self.active, |active| *active == 0).await;
    }

    /// Whether the selection enables that controller.
    pub(crate) fn enables(&self, controller: &ControllerDescriptor) -> bool {
        self.selection.borrow().enables(controller)
    }

    pub(super) async fn enabled(&self, controller: &ControllerDescriptor) {
        wait(&self.selection, |selection| selection.enables(controller)).await;
    }

    pub(super) async fn disabled(&self, controller: &ControllerDescriptor) {
        wait(&self.selection, |selection| !selection.enables(controller)).await;
    }

    pub(super) async fn loops_may_run(&self) {
        wait(&self.loops, |loops| matches!(loops, Loops::Run)).await;
    }

    /// Waits until the loops must stop; returns how long they have for it.
    pub(super) async fn loops_must_stop(&self) -> Duration {
        match wait(&self.loops, |loops| matches!(loops, Loops::Stop { .. })).await {
            Loops::Run => Duration::ZERO,
            Loops::Stop { grace } => grace,
        }
    }

    /// Counts a controller that runs its loops.
    pub(super) fn active(&self) -> Active<'_> {
        self.active.send_modify(|active| *active += 1);
        Active(self)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.send_modify(|active| *active -= 1);
    }
}

/// Waits for a value that `holds`, and returns it.
async fn wait<T: Clone>(sender: &watch::Sender<T>, holds: impl Fn(&T) -> bool) -> T {
    let mut receiver = sender.subscribe();
    let value = receiver.wait_for(|value| holds(value)).await.map(|value| value.clone());
    value.expect("the sender must live as long as its reference")
}
