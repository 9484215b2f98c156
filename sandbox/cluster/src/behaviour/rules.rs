//! Scenario files: rules for the behaviour of pods.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{Behaviour, PhraseError};

/// Rules for the behaviour of pods, by namespace, labels, image and container.
///
/// The default has no rules. The language is described in `docs/sandbox-pods.md`.
///
/// # Examples
/// ```
/// use kcm_sandbox_cluster::PodRules;
///
/// let rules = PodRules::parse("
/// pods:
/// - labels: { app: web }
///   image: '*:2.*'
///   do: crash after=5s..10s times=3
/// - do: start=1s..2s
/// ");
/// assert!(rules.is_ok());
/// let error = PodRules::parse("pods:\n- do: crash aftr=5s\n").unwrap_err();
/// assert_eq!(error.to_string().split(": ").next(), Some("line 2, column 13"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRules {
    rules: Vec<Rule>,
}

/// Error parsing a scenario file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file is not YAML, or has unknown fields.
    #[error("line {line}, column {column}: {problem}")]
    Malformed {
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: u64,
        /// The error message.
        problem: String,
    },
    /// A phrase cannot be parsed.
    #[error("line {line}, column {column}: {source}")]
    Phrase {
        /// Counted from 1.
        line: u64,
        /// Counted from 1.
        column: u64,
        /// The parse error of the phrase.
        source: PhraseError,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    namespace: Option<String>,
    labels: BTreeMap<String, String>,
    image: Option<String>,
    container: Option<String>,
    behaviour: Behaviour,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    pods: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    namespace: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    image: Option<String>,
    container: Option<String>,
    r#do: Spanned<String>,
}

/// The properties of a container that rules match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: &'a kcm_api::Labels,
    pub(crate) container: &'a str,
    pub(crate) image: &'a str,
}

impl PodRules {
    /// Parses a scenario file.
    ///
    /// # Errors
    /// The line and column that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let file: FileText = serde_saphyr::from_str(text).map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let problem = error.without_snippet().to_string();
            // The message already starts with the position.
            let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
            RulesError::Malformed { line, column, problem }
        })?;
        file.pods.into_iter().map(|rule| rule.parse(text)).collect::<Result<_, _>>().map(|rules| Self { rules })
    }

    /// Returns the behaviour of a container; for each field the first matching rule that specifies it counts.
    pub(crate) fn behaviour(&self, subject: Subject<'_>) -> Behaviour {
        let matching = self.rules.iter().filter(|rule| rule.matches(subject));
        matching.fold(Behaviour::default(), |said, rule| said.or(rule.behaviour))
    }
}

impl RuleText {
    fn parse(self, text: &str) -> Result<Rule, RulesError> {
        let at = self.r#do.referenced;
        let behaviour = self.r#do.value.parse().map_err(|source: PhraseError| {
            let line = text.lines().nth(usize::try_from(at.line()).unwrap_or(1).saturating_sub(1)).unwrap_or_default();
            // The offset in the file is exact for plain and quoted scalars; for others only their start is known.
            let start = usize::try_from(at.column()).unwrap_or(1).saturating_sub(1);
            let skipped = line.get(start..).and_then(|rest| rest.find(self.r#do.value.as_str()));
            let offset = skipped.map_or(0, |skipped| skipped + source.at) as u64;
            RulesError::Phrase { line: at.line(), column: at.column() + offset, source }
        })?;
        Ok(Rule {
            namespace: self.namespace,
            labels: self.labels,
            image: self.image,
            container: self.container,
            behaviour,
        })
    }
}

impl Rule {
    fn matches(&self, subject: Subject<'_>) -> bool {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|it| glob(it, text));
        fits(&self.namespace, subject.namespace)
            && fits(&self.image, subject.image)
            && fits(&self.container, subject.container)
            && self.labels.iter().all(|(key, value)| subject.labels.get(key) == Some(value))
    }
}

/// Reports whether a string matches a pattern with `*` wildcards.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::{Pull, Range, Ready};

    #[test]
    fn patterns_match_the_whole_string() {
        for (pattern, text, expected) in [
            ("web", "web", true),
            ("web", "web2", false),
            ("*", "", true),
            ("web:*", "web:1", true),
            ("*/web:2.*", "host/a/web:2.1", true),
            ("*/web:2.*", "host/a/web:3", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ab", "ab", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_matching_rule_that_specifies_a_field_counts() {
        let rules = PodRules::parse(
            "pods:\n- labels: {app: web}\n  do: start=1s\n- namespace: shop\n  container: main\n  do: 'start=2s ready=never'\n- image: '*:2'\n  do: pull=fails\n",
        )
        .expect("the rules are well formed");
        let labels: kcm_api::Labels = [("app", "web")].into_iter().collect();
        let none = kcm_api::Labels::default();
        let said =
            |namespace, labels, container, image| rules.behaviour(Subject { namespace, labels, container, image });
        let one = said("shop", &labels, "main", "web:2");
        assert_eq!(one.start, Some(Range::millis(1_000, 1_000)));
        assert_eq!((one.ready, one.pull), (Some(Ready::Never), Some(Pull::Fails)));
        assert_eq!(said("shop", &none, "main", "web:1").start, Some(Range::millis(2_000, 2_000)));
        assert_eq!(said("shop", &none, "other", "web:1"), Behaviour::default());
    }

    #[test]
    fn errors_have_line_and_column() {
        for (text, line, column, problem) in [
            ("pods:\n- do: crash aftr=5s\n", 2, 13, "unknown word \"aftr\""),
            ("pods:\n- do: \"run crash\"\n", 2, 12, "crash contradicts"),
            ("pods:\n- image: a\n  doo: run\n", 3, 3, "unknown field"),
            ("pods:\n- image: [a]\n", 2, 10, "expected string"),
            ("pods: [\n", 1, 7, "unclosed bracket"),
            ("pads: []\n", 1, 1, "unknown field"),
        ] {
            let error = PodRules::parse(text).expect_err(text).to_string();
            let place = format!("line {line}, column {column}: ");
            assert!(error.strip_prefix(&place).is_some_and(|rest| rest.starts_with(problem)), "{text}: {error}");
        }
        assert_eq!(PodRules::parse("# nothing\n\n").expect("nothing is well formed"), PodRules::default());
    }
}
