//! Problems of one source and their text.

use std::fmt::{self, Write};

use crate::Problem;
use crate::ast::Position;

/// Number of problems that are kept.
const MAX_KEPT: usize = 100;
/// Length in bytes of the longest line that is shown below a problem.
const MAX_LINE: usize = 16_384;

/// Collects problems in the order in which they are found.
#[derive(Debug, Default)]
pub(crate) struct Log {
    kept: Vec<Problem>,
    dropped: usize,
}

impl Log {
    pub(crate) fn report(&mut self, position: Option<Position>, message: String) {
        if self.kept.len() < MAX_KEPT {
            self.kept.push(Problem { position, message });
        } else {
            self.dropped += 1;
        }
    }

    /// Replaces everything by one problem of the whole source.
    pub(crate) fn replace(&mut self, message: &str) {
        *self = Self { kept: vec![Problem { position: None, message: message.to_owned() }], dropped: 0 };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// The problems of a source, sorted by position.
///
/// `Display` writes the text of cel-go: each problem with its line and a mark below the column, and the number of
/// problems beyond the first hundred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    problems: Vec<Problem>,
    dropped: usize,
    source: String,
}

impl Issues {
    pub(crate) fn new(source: &str, log: Log) -> Self {
        let Log { kept: mut problems, dropped } = log;
        problems.sort_by_key(|problem| problem.position);
        // Sources that are refused for their size are not kept.
        let source = if problems.iter().any(|problem| problem.position.is_some()) { source } else { "" };
        Self { problems, dropped, source: source.to_owned() }
    }

    pub(crate) fn of(source: &str, problems: Vec<Problem>) -> Self {
        Self::new(source, Log { kept: problems, dropped: 0 })
    }

    /// Returns the problems, at least one and at most a hundred.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the number of problems beyond the first hundred.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.source.split('\n').collect();
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            let Some(Position { line, column }) = problem.position else {
                write!(f, "ERROR: <input>:-1:0: {}", problem.message)?;
                continue;
            };
            write!(f, "ERROR: <input>:{line}:{}: {}", column + 1, problem.message)?;
            if let Some(text) = lines.get((line as usize).saturating_sub(1)) {
                snippet(f, text, column as usize)?;
            }
        }
        if self.dropped > 0 {
            write!(f, "\n{} more errors were truncated", self.dropped)?;
        }
        Ok(())
    }
}

fn snippet(f: &mut fmt::Formatter<'_>, line: &str, column: usize) -> fmt::Result {
    if line.len() > MAX_LINE {
        return Ok(());
    }
    write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
    let wide = |c: char| c.len_utf8() > 1;
    let mut chars = line.chars();
    for c in chars.by_ref().take(column) {
        f.write_char(if wide(c) { '\u{ff0e}' } else { '.' })?;
    }
    f.write_char(if chars.next().is_some_and(wide) { '\u{ff3e}' } else { '^' })
}

impl std::error::Error for Issues {}
