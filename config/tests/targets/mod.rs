//! Rules that hold for any input, by kind: the bodies of the fuzz targets in `fuzz/`, which the property tests call
//! too.
//!
//! No input makes a correct program panic.
#![allow(dead_code, unreachable_pub, reason = "each program that includes this uses a part of it")]

use kcm_config::{ConfigError, Gates, GoDuration, Loaded, Origin, Sources, gates};

use crate::support::{FILE, table};

/// Longer than any line of an error: a given text is cut to 80 characters, each of which an escape may make ten.
const LONGEST_LINE: usize = 3000;

/// More errors than any input reports: the first hundred of a file, the number of further errors, and as many from the
/// other sources.
const MOST_ERRORS: usize = 250;

/// A duration: parsing the output gives the same value, and text that Go refuses is refused.
pub fn duration(text: &str) {
    let Ok(duration) = text.parse::<GoDuration>() else { return };
    assert_eq!(duration.to_string().parse(), Ok(duration), "{text:?}");
    assert!(!text.contains(char::is_whitespace), "{text:?}");
    assert!(duration.unsigned().as_nanos() <= u128::from(i64::MAX.unsigned_abs()));
}

/// A command line, an argument in each line: it is taken, or each refusal names its argument.
pub fn flags(text: &str) {
    let arguments: Vec<&str> = text.split('\n').collect();
    let named = |origin: &Origin| match origin {
        Origin::Argument(typed) => !typed.is_empty() || arguments.contains(&""),
        // The file that the arguments name, which is not there.
        Origin::File { at, .. } => at.is_none(),
        Origin::Default | Origin::Variable(_) => false,
    };
    load(&Sources::default().arguments(arguments.iter().copied()), named);
}

/// A configuration file: it is taken, or each refusal has its line and column.
pub fn file(bytes: &[u8]) {
    let sources = Sources::default().arguments(["--config", FILE]).file(FILE, bytes);
    // Only the number of further mistakes and an empty file have no position.
    load(&sources, |origin| match origin {
        Origin::File { at, .. } => at.is_none_or(|at| at.line > 0 && at.column > 0),
        Origin::Default | Origin::Argument(_) | Origin::Variable(_) => false,
    });
}

/// Feature gates, as their flag has them: they are taken, or each refusal is one line.
pub fn gates(text: &str) {
    let pairs: Vec<&str> = text.split(',').collect();
    match Gates::parse(gates::KNOWN, &pairs) {
        Ok(gates) => {
            for state in gates.states(gates::KNOWN) {
                assert_eq!(gates.is_on(state.gate.name), state.is_on, "{text:?}");
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in &problems {
                check_line(&problem.to_string());
            }
        }
    }
    flags(&format!("--feature-gates={}", text.replace('\n', " ")));
}

/// Loads the sources. Loaded settings can be printed; each refusal is a line with an origin that `is_named`.
fn load(sources: &Sources, is_named: impl Fn(&Origin) -> bool) {
    match table().load(sources) {
        Ok(Loaded::Help | Loaded::Version(_)) => {}
        Ok(Loaded::Settings(settings)) => {
            assert!(!settings.render().is_empty());
            settings.warnings().iter().for_each(|warning| check_line(&warning.to_string()));
        }
        Err(errors) => {
            assert!((1..=MOST_ERRORS).contains(&errors.0.len()), "{} errors", errors.0.len());
            for error in &errors.0 {
                check(error, &is_named);
            }
        }
    }
}

fn check(error: &ConfigError, is_named: impl Fn(&Origin) -> bool) {
    assert!(is_named(&error.origin), "{error:?}");
    check_line(&error.to_string());
}

fn check_line(line: &str) {
    assert!(!line.contains(['\n', '\r']), "{line:?}");
    assert!(line.len() <= LONGEST_LINE, "{} bytes: {line}", line.len());
}
