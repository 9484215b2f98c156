//! Reads the log of a program of ours for panics and errors that its scenario did not announce.
//!
//! A scenario can hold although a reconcile panicked, was caught and succeeded at the second attempt: only the log shows
//! it.

use std::fmt;

/// An error that a scenario provokes, and why the program is right to log it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedError {
    /// A part of the log line.
    pub message: &'static str,
    /// Why the scenario leads to it.
    pub reason: &'static str,
}

/// A log line that fails a scenario.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    kind: Kind,
    line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A panic, caught or not. It is never expected.
    Panic,
    /// A line at error level, or a refusal to start.
    Error,
}

impl Finding {
    fn of(line: &str) -> Option<Self> {
        let kind = if is_panic(line) {
            Kind::Panic
        } else if is_error(line) {
            Kind::Error
        } else {
            return None;
        };
        Some(Self { kind, line: line.to_owned() })
    }

    /// Whether one of the expected errors explains the line.
    fn is_expected(&self, expected: &[ExpectedError]) -> bool {
        self.kind == Kind::Error && expected.iter().any(|it| self.line.contains(it.message))
    }

    /// Whether the line contains a text.
    pub fn contains(&self, text: &str) -> bool {
        self.line.contains(text)
    }

    /// Whether the line names a namespace, on its own or as the first part of a key.
    pub fn names(&self, namespace: &str) -> bool {
        let belongs_to_name = |character: char| character.is_ascii_alphanumeric() || character == '-';
        self.line.match_indices(namespace).any(|(at, _)| {
            !self.line[..at].ends_with(belongs_to_name)
                && !self.line[at + namespace.len()..].starts_with(belongs_to_name)
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Panic => "a panic: ",
            Kind::Error => "an error that the scenario does not expect: ",
        })?;
        f.write_str(&self.line)
    }
}

/// The panics in a log, and the errors that are not expected.
pub fn findings(log: &str, expected: &[ExpectedError]) -> Vec<Finding> {
    log.lines().filter_map(Finding::of).filter(|finding| !finding.is_expected(expected)).collect()
}

/// A panic as the standard library prints it, as our programs log one that they caught, and the end of a process that
/// could not be caught.
fn is_panic(line: &str) -> bool {
    ["panicked", "fatal runtime error", " has overflowed its stack"].iter().any(|sign| line.contains(sign))
}

/// A line at error level, which begins as in `E0102 15:04:05.6`, or `error: …` from a program that does not start.
fn is_error(line: &str) -> bool {
    let is_date = |word: &str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_klog = line.strip_prefix('E').and_then(|rest| rest.split_once(' ')).is_some_and(|(date, _)| is_date(date));
    is_klog || line.starts_with("error: ")
}

#[cfg(test)]
mod tests {
    use super::{ExpectedError, findings};

    const QUIET: &str = "\
I0102 03:04:05.250000      17 mod.rs:1] \"Starting controller\" controller=\"replicaset-controller\"
W0102 03:04:05.300000      17 worker.rs:2] \"Reconcile failed; it is retried\" err=\"E0102 of a quota\" key=\"a/web\"
I0102 03:04:05.400000      17 broadcaster.rs:3] \"Unable to write event\"
";

    const FORBIDDEN: &str = "E0102 03:04:06.000000      17 worker.rs:4] \"Reconcile lacks a permission\" \
                             logger=\"replicaset-controller\" namespace=\"ours-replicaset-adopts\" name=\"web\" \
                             attempt=1 key=\"ours-replicaset-adopts/web\"";

    const EXPECTED: [ExpectedError; 1] =
        [ExpectedError { message: "Reconcile lacks a permission", reason: "the user has no rights yet" }];

    fn lines(log: &str, expected: &[ExpectedError]) -> Vec<String> {
        findings(log, expected).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn information_and_warnings_are_no_findings() {
        assert!(lines(QUIET, &[]).is_empty());
    }

    #[test]
    fn an_error_is_a_finding_unless_it_is_expected() {
        let log = format!("{QUIET}{FORBIDDEN}\n{QUIET}");
        assert_eq!(lines(&log, &[]), [format!("an error that the scenario does not expect: {FORBIDDEN}")]);
        assert!(lines(&log, &EXPECTED).is_empty());
    }

    #[test]
    fn an_expected_error_excuses_no_other_error() {
        let other = "E0102 03:04:06.000000      17 reflector.rs:5] \"Object cannot be decoded\" key=\"a/web\"";
        assert_eq!(lines(&format!("{FORBIDDEN}\n{other}\n"), &EXPECTED).len(), 1);
    }

    #[test]
    fn a_panic_is_a_finding_at_whatever_level_and_is_never_expected() {
        let panics = [
            "thread 'main' panicked at controllers/src/replicaset/plan.rs:12:5:",
            "thread 'main' (4711) panicked at controllers/src/replicaset/plan.rs:12:5:",
            "E0102 03:04:06.000000      17 worker.rs:6] \"Reconcile panicked; the key is retried with back-off\" panic=\"no\"",
            "W0102 03:04:06.000000      17 supervise.rs:7] \"Controller failed\" err=\"panicked: index out of bounds\"",
            "thread 'main' has overflowed its stack",
            "fatal runtime error: stack overflow, aborting",
        ];
        let expected = [ExpectedError { message: "panicked", reason: "there is none" }];
        for panic in panics {
            assert_eq!(lines(&format!("{QUIET}{panic}\n"), &expected), [format!("a panic: {panic}")]);
        }
    }

    #[test]
    fn a_refusal_to_start_is_an_error() {
        assert_eq!(lines("error: --kubeconfig: no such file\n", &[]).len(), 1);
    }

    #[test]
    fn a_line_names_a_namespace_only_as_a_whole() {
        let found = findings(FORBIDDEN, &[]);
        assert!(found[0].names("ours-replicaset-adopts"));
        assert!(!found[0].names("ours-replicaset-adopt"));
        assert!(!found[0].names("replicaset-adopts"));
        let longer = FORBIDDEN.replace("ours-replicaset-adopts", "ours-replicaset-adopts-the-surplus");
        assert!(!findings(&longer, &[])[0].names("ours-replicaset-adopts"));
    }
}
