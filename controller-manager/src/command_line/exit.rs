//! Results and exit codes of the process.

use std::process::ExitCode;

/// Result of the process, and its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It stopped on request, or printed a result.
    Stopped = 0,
    /// It refused to start: usage, configuration, or the set of controllers. All reasons were printed.
    Refused = 1,
    /// The API server cannot be reached or used; or something failed in a sandbox that had started.
    ApiServer = 2,
    /// The lease was lost, and the settings end the process then.
    LeaseLost = 3,
    /// A controller failed, and the settings end the process then.
    ControllerFailed = 4,
}

impl Exit {
    /// Ends the process at once, from any thread. For a process whose main thread cannot return.
    #[expect(clippy::disallowed_methods, reason = "`main` does not return any more")]
    pub(crate) fn now(self) -> ! {
        std::process::exit(self as i32)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_the_documentation_promises() {
        assert_eq!(
            [Exit::Stopped, Exit::Refused, Exit::ApiServer, Exit::LeaseLost, Exit::ControllerFailed]
                .map(|exit| exit as u8),
            [0, 1, 2, 3, 4]
        );
    }
}
