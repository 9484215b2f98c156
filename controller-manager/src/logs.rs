//! Logs: structured lines on standard error.

use std::io::{self, IsTerminal as _};

use tracing::Level;

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

/// Prints what is logged from now on, as `--v` asks for. Does nothing if logs are set up already.
pub(crate) fn print(verbosity: i32) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level(verbosity))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .finish();
    // A host may have set up its own.
    drop(tracing::subscriber::set_global_default(subscriber));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_follows_klog() {
        assert_eq!([-1, 0, 3, 4, 5, 6, 10].map(level), [
            Level::INFO,
            Level::INFO,
            Level::INFO,
            Level::DEBUG,
            Level::DEBUG,
            Level::TRACE,
            Level::TRACE
        ]);
    }
}
