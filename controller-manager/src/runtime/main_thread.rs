//! The runtime of the process: one thread, with signals passed on to the program.

use kcm_framework::Stop;

use super::moderation::pause_while_busy;
use super::signals::Signals;
use crate::command_line::exit::Exit;
use crate::command_line::output::refuse;
use crate::command_line::subcommand::Failure;
use crate::logs::Logs;

/// Time at which the thread asks for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeUps {
    /// Without a pause before it.
    Immediate,
    /// After a pause while the cluster is busy (docs/adr/0011-moderated-wake-ups.md).
    Moderated,
}

/// Runs `program` until it ends. Signals stop it: the first drains, the second aborts.
pub(crate) fn run<F>(wake_ups: WakeUps, logs: &Logs, program: impl FnOnce(Stop) -> F) -> Exit
where
    F: Future<Output = Result<(), Failure>>,
{
    // A second thread costs a sixth more CPU in wake-ups between the two, and one core carries more writes than an API
    // server takes (docs/adr/0004-one-thread.md). The moderation of wake-ups is made for one thread too.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all();
    if wake_ups == WakeUps::Moderated {
        builder.on_thread_park(pause_while_busy());
    }
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&[format!("cannot start the runtime: {error}")]),
    };
    let exit = runtime.block_on(until_stopped(logs, program));
    // A thread that still resolves a host name must not delay the end.
    runtime.shutdown_background();
    exit
}

async fn until_stopped<F>(logs: &Logs, program: impl FnOnce(Stop) -> F) -> Exit
where
    F: Future<Output = Result<(), Failure>>,
{
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return refuse(&[format!("cannot catch signals: {error}")]),
    };
    let stop = Stop::default();
    let program = program(stop.clone());
    let ended = tokio::select! {
        biased;
        never = signals.pass_to(stop) => match never {},
        ended = program => ended,
        never = logs.flush_periodically() => match never {},
    };
    match ended {
        Ok(()) => Exit::Stopped,
        Err(Failure { exit, reasons }) => crate::command_line::output::fail(exit, &reasons),
    }
}
