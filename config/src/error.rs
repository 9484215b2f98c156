//! Configuration errors and warnings, as data.

use std::fmt;
use std::path::PathBuf;

use crate::gate::GateStage;

/// A position in a file. Lines and columns are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Number of the line, from 1.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The origin of a value or of an error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The default in the table.
    Default,
    /// The configuration file that `--config` names.
    File {
        /// Path of the file, as it was given.
        path: PathBuf,
        /// The position; `None` for the whole file.
        at: Option<Position>,
    },
    /// An environment variable, by its name.
    Variable(String),
    /// The command line: the argument up to its `=`, unchanged.
    Argument(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, at: None } => write!(f, "{}", path.display()),
            Self::File { path, at: Some(at) } => write!(f, "{}:{at}", path.display()),
            Self::Variable(name) => f.write_str(&cut(name)),
            Self::Argument(typed) => f.write_str(&cut(typed)),
        }
    }
}

/// One configuration error: its origin and its problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// Source of the wrong setting.
    pub origin: Origin,
    /// The problem that was found.
    pub problem: Problem,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, &self.problem) {
            // The sentence begins with the flag already.
            (
                Origin::Argument(typed),
                problem @ (Problem::WrongType { setting, .. } | Problem::Refused { setting, .. }),
            ) if typed == setting => problem.fmt(f),
            (origin, problem) => write!(f, "{origin}: {problem}"),
        }
    }
}

/// All configuration errors, in the order file, environment, command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    /// One error per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

/// The problem of a configuration error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No setting has this flag.
    UnknownFlag {
        /// The known flag that is spelled most like it.
        nearest: Option<String>,
    },
    /// Upstream has removed this flag.
    RemovedFlag {
        /// The setting to use instead.
        advice: &'static str,
    },
    /// No setting has this one-letter flag.
    UnknownShorthand {
        /// The letter after the dash.
        letter: char,
        /// The nearest long flag.
        nearest: Option<String>,
    },
    /// A flag without its value at the end of the command line.
    MissingValue {
        /// Description of a valid value.
        expected: String,
    },
    /// An argument that is neither a flag nor the value of one.
    Positional {
        /// The boolean flag before it, whose value it may be.
        after: Option<String>,
    },
    /// An argument or a variable is not UTF-8.
    NotText,
    /// An unknown variable resembles a known one.
    UnknownVariable {
        /// The known variable that is spelled most like it.
        nearest: String,
    },
    /// No setting or section has this key.
    UnknownKey {
        /// The key as it was written.
        key: String,
        /// Dotted path of the section of the key; empty at the top.
        section: String,
        /// The known key of that section that is spelled most like it.
        nearest: Option<String>,
    },
    /// A key that stands twice in its section, in the same or in both spellings.
    DuplicateKey {
        /// The key as it was written the second time.
        key: String,
        /// Position of the first one.
        first: Position,
    },
    /// A value of the wrong type.
    WrongType {
        /// The setting: its flag or its key.
        setting: String,
        /// The value that was given.
        given: String,
        /// Description of a valid value.
        expected: String,
    },
    /// The validation of the setting rejects the value.
    Refused {
        /// Flag of the setting that refuses the value.
        setting: String,
        /// The value that was given.
        given: String,
        /// The end of the sentence "the value …".
        reason: String,
    },
    /// `apiVersion` or `kind` is missing or wrong.
    WrongHeader {
        /// `apiVersion` or `kind`, whichever is wrong.
        key: &'static str,
        /// The value that was given, if any.
        given: Option<String>,
        /// The only accepted value.
        expected: &'static str,
    },
    /// The file could not be read.
    Unreadable {
        /// The reason that the system gave.
        reason: String,
    },
    /// The file is not YAML or JSON.
    Syntax {
        /// The reason that the parser gave.
        reason: String,
    },
    /// The file has more errors than are reported.
    MoreErrors {
        /// Number of further errors.
        count: usize,
    },
    /// The file uses a feature of YAML that is not supported.
    Unsupported {
        /// The feature, as the start of the sentence "… are not supported here".
        feature: &'static str,
    },
    /// The feature gate is unknown.
    UnknownGate {
        /// The gate as it was written.
        gate: String,
        /// The known gate that is spelled most like it.
        nearest: Option<String>,
    },
    /// The feature gate was removed.
    RemovedGate {
        /// Name of the feature gate.
        gate: String,
        /// Why it was removed and what to do, as the end of the sentence "feature gate NAME …".
        advice: String,
    },
    /// The feature gate was not there yet in the version of Kubernetes that is emulated.
    GateTooNew {
        /// Name of the feature gate.
        gate: String,
        /// The emulated version of Kubernetes.
        version: String,
    },
    /// The feature gate is on, and requires others that are off.
    GateRequires {
        /// Name of the feature gate.
        gate: String,
        /// Those that are off.
        off: Vec<String>,
    },
    /// Some feature gates are given with the component before their name, and others without.
    MixedGatePrefixes,
    /// The component before the name of a feature gate is wrong.
    UnknownGateComponent {
        /// The component before the gate's name.
        component: String,
    },
    /// The feature gate is locked to its default.
    LockedGate {
        /// Name of the feature gate.
        gate: String,
        /// The value that the gate is locked to.
        locked_to: bool,
    },
}

/// The end of a sentence that suggests the nearest name, or nothing.
struct DidYouMean<'a>(Option<&'a String>);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, "; did you mean {nearest}?"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFlag { nearest: None } => f.write_str("unknown flag; --help lists all flags"),
            Self::UnknownFlag { nearest } => write!(f, "unknown flag{}", DidYouMean(nearest.as_ref())),
            Self::RemovedFlag { advice } => write!(f, "Kubernetes has removed this flag: {advice}"),
            Self::UnknownShorthand { letter, nearest } => {
                let letter = letter.escape_debug();
                write!(f, "unknown one-letter flag -{letter}{}", DidYouMean(nearest.as_ref()))
            }
            Self::MissingValue { expected } => write!(f, "has no value, expected {expected}"),
            Self::Positional { after: None } => f.write_str("arguments that are not flags are not taken"),
            Self::Positional { after: Some(flag) } => {
                write!(
                    f,
                    "arguments that are not flags are not taken; the value of {flag} is given with an equals sign"
                )
            }
            Self::NotText => f.write_str("is not UTF-8"),
            Self::UnknownVariable { nearest } => write!(f, "unknown variable; did you mean {nearest}?"),
            Self::UnknownKey { key, section, nearest } if section.is_empty() => {
                write!(f, "unknown key {key}{}", DidYouMean(nearest.as_ref()))
            }
            Self::UnknownKey { key, section, nearest } => {
                write!(f, "unknown key {key} in {section}{}", DidYouMean(nearest.as_ref()))
            }
            Self::DuplicateKey { key, first } => write!(f, "{key} is given twice, first at {first}"),
            Self::WrongType { setting, given, expected } => write!(f, "{setting} is {given}, expected {expected}"),
            Self::Refused { setting, given, reason } => write!(f, "{setting} is {given}: the value {reason}"),
            Self::WrongHeader { key, given: Some(given), expected } => {
                write!(f, "{key} is {given}, expected {expected}")
            }
            Self::WrongHeader { key, given: None, expected } => write!(f, "{key} is missing, expected {expected}"),
            Self::Unreadable { reason } => write!(f, "cannot read the configuration file: {reason}"),
            Self::Syntax { reason } => write!(f, "not valid YAML or JSON: {reason}"),
            Self::MoreErrors { count } => write!(f, "{count} more errors, not reported one by one"),
            Self::Unsupported { feature } => write!(f, "{feature} are not supported here"),
            Self::UnknownGate { gate, nearest } => {
                write!(f, "unknown feature gate {}{}", cut(gate), DidYouMean(nearest.as_ref()))
            }
            Self::RemovedGate { gate, advice } => write!(f, "feature gate {gate} {advice}"),
            Self::GateTooNew { gate, version } => {
                write!(f, "feature gate {gate} is not there yet in the emulated version {version}")
            }
            Self::GateRequires { gate, off } => {
                write!(f, "feature gate {gate} is on, and requires others that are off: {}", off.join(", "))
            }
            Self::MixedGatePrefixes => {
                f.write_str("feature gates are given with the prefix kube: and without it; give all of them in one way")
            }
            Self::UnknownGateComponent { component } => {
                write!(f, "{} is no component of this program; feature gates are those of kube", cut(component))
            }
            Self::LockedGate { gate, locked_to } => {
                write!(f, "feature gate {gate} is locked to {locked_to} and cannot be changed")
            }
        }
    }
}

/// A problem of the configuration that does not stop the program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A deprecated setting was given.
    Deprecated {
        /// Source of the deprecated setting.
        origin: Origin,
        /// The flag that is deprecated.
        flag: &'static str,
        /// The setting to use instead.
        advice: &'static str,
    },
    /// A feature gate that will be removed was set.
    OldGate {
        /// Source of the feature gate's value.
        origin: Origin,
        /// Name of the feature gate.
        gate: String,
        /// Its stage: generally available, or deprecated.
        stage: GateStage,
    },
    /// A feature gate was set that upstream's kube-controller-manager reads, and that nothing here reads.
    GateWithoutEffect {
        /// Source of the feature gate's value.
        origin: Origin,
        /// Name of the feature gate.
        gate: String,
    },
    /// A setting was given in a file by the key that it once had.
    MovedKey {
        /// Place of the former key.
        origin: Origin,
        /// The former key, as the file has it.
        key: String,
        /// The setting that it means.
        to: String,
    },
    /// An unknown variable with the prefix of settings resembles no known one.
    IgnoredVariable {
        /// Name of the environment variable.
        name: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deprecated { origin, flag, advice } => write!(f, "{origin}: --{flag} is deprecated: {advice}"),
            Self::OldGate { origin, gate, stage } => {
                let stage = if *stage == GateStage::Deprecated { "deprecated" } else { "generally available" };
                write!(f, "{origin}: feature gate {gate} is {stage}, and will be removed")
            }
            Self::GateWithoutEffect { origin, gate } => {
                write!(f, "{origin}: feature gate {gate} has no effect: nothing that reads it is part of this program")
            }
            Self::MovedKey { origin, key, to } => write!(f, "{origin}: {key} has moved: use the key of {to}"),
            Self::IgnoredVariable { name } => write!(f, "{name}: no setting has this variable, it is ignored"),
        }
    }
}

/// The characters of a given text that an error line shows.
const LONGEST: usize = 80;

/// The given value, quoted and cut to the length of an error line.
pub(crate) fn excerpt(given: &str) -> String {
    match given.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &given[..end]),
        None => format!("{given:?}"),
    }
}

/// Cuts a given name to the length of an error line, and escapes characters that would break the line.
fn cut(given: &str) -> String {
    let quoted = excerpt(given);
    if given.contains(char::is_control) || given.chars().count() > LONGEST { quoted } else { given.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_input_is_cut_on_a_character() {
        assert_eq!(excerpt("a\n"), "\"a\\n\"");
        assert_eq!(excerpt(&"é".repeat(90)).chars().filter(|&c| c == 'é').count(), 80);
    }
}
