//! Logs: structured lines on standard error.

use std::io;

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

/// The most detailed level that is printed at a verbosity.
///
/// # Upstream
/// klog's conventions: 0 to 3 are for operators, 4 and 5 for debugging, 6 and more for tracing.
const fn level(verbosity: i32) -> Level {
    match verbosity {
        ..=3 => Level::INFO,
        4..=5 => Level::DEBUG,
        6.. => Level::TRACE,
    }
}

/// Libraries that log every frame and every poll, which helps only after everything else.
const TRANSPORT: [&str; 6] = ["h2", "hyper", "hyper_util", "kube_client", "rustls", "tower"];

/// From this verbosity on, the transport is printed like everything else.
const TRANSPORT_TOO: i32 = 8;

fn filter(verbosity: i32) -> Targets {
    let level = level(verbosity);
    let transport = if verbosity < TRANSPORT_TOO { Level::WARN } else { level };
    Targets::new().with_default(level).with_targets(TRANSPORT.map(|library| (library, transport)))
}

/// Prints what is logged from now on, as `--v` asks for. Does nothing if logs are set up already.
pub(crate) fn print(verbosity: i32) {
    set_up(filter(verbosity));
}

/// Prints warnings and errors from now on, where the terminal belongs to something else.
pub(crate) fn print_warnings() {
    set_up(Targets::new().with_default(Level::WARN));
}

fn set_up(filter: Targets) {
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
    // Over the whole subscriber, and not only over this layer: then a line that is not printed costs nothing.
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    // A host may have set up its own.
    drop(tracing::subscriber::set_global_default(subscriber));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_follows_klog() {
        assert_eq!(
            [-1, 0, 3, 4, 5, 6, 10].map(level),
            [Level::INFO, Level::INFO, Level::INFO, Level::DEBUG, Level::DEBUG, Level::TRACE, Level::TRACE]
        );
    }

    #[test]
    fn the_transport_is_silent_until_everything_is_asked_for() {
        assert!(!filter(6).would_enable("h2::codec", &Level::DEBUG));
        assert!(filter(6).would_enable("kcm_framework::manager", &Level::TRACE));
        assert!(filter(6).would_enable("custom_controller", &Level::TRACE));
        assert!(filter(8).would_enable("h2::codec", &Level::DEBUG));
    }
}
