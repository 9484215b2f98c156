//! Output of the process: results on standard output, reasons on standard error.

use std::io::{self, Write};

use crate::command_line::exit::Exit;

/// Prints every reason for not starting.
pub(crate) fn refuse(reasons: &[impl ToString]) -> Exit {
    fail(Exit::Refused, reasons)
}

/// The reasons that are printed: a list of hundreds of thousands of wrong names helps no more than its begin.
const MOST_REASONS: usize = 200;

/// Prints every reason of a failure.
pub(crate) fn fail(exit: Exit, reasons: &[impl ToString]) -> Exit {
    let printed = reasons.iter().take(MOST_REASONS);
    let mut lines: Vec<String> = printed.map(|reason| format!("error: {}\n", reason.to_string())).collect();
    if let Some(more) = reasons.len().checked_sub(MOST_REASONS).filter(|more| *more > 0) {
        lines.push(format!("error: {more} more, not printed one by one\n"));
    }
    // If standard error is closed, the exit code is all that can be reported.
    drop(io::stderr().write_all(lines.concat().as_bytes()));
    exit
}

/// Prints a result on standard output.
pub(crate) fn print(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that closes its end early, such as `head`, is not a failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => refuse(&[format!("cannot print: {error}")]),
        Ok(()) | Err(_) => Exit::Stopped,
    }
}
