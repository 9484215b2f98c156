//! Label selectors: parsed and checked once, matched often.

mod query;

use std::fmt;

use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::name::{is_label_key, is_label_value};

/// A condition on labels.
///
/// Made from the [`LabelSelector`] of an object, or from the text of a `labelSelector=` query with [`str::parse`].
/// Displays as that text, requirements sorted by key and values sorted; parsing it again gives an equal selector.
///
/// # Upstream
/// `metav1.LabelSelectorAsSelector` and `labels.Parse`; the spellings `=` and `==` are both displayed as `=`.
/// A selector that selects nothing is displayed as a contradiction, because the empty text selects everything.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), kcm_api::InvalidSelector> {
/// let selector: kcm_api::Selector = "tier in (web, api), !canary".parse()?;
/// assert!(selector.matches(&[("tier", "api")].into_iter().collect()));
/// assert_eq!(selector.to_string(), "!canary,tier in (api,web)");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selector(Repr);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    Nothing,
    // Sorted by key, then test.
    All(Box<[Requirement]>),
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Requirement {
    key: InternedStr,
    test: Test,
}

/// Test of the value of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Test {
    Equals(InternedStr),
    NotEquals(InternedStr),
    // Sorted, without repetition.
    In(Box<[InternedStr]>),
    NotIn(Box<[InternedStr]>),
    Exists,
    DoesNotExist,
    Greater(i64),
    Less(i64),
}

/// A selector that the API does not admit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSelector {
    /// A key that no label can have.
    #[error("label selector has the invalid key {key:?}")]
    Key {
        /// Key of the label.
        key: String,
    },
    /// A value that no label can have.
    #[error("label selector has the invalid value {value:?} for key {key:?}")]
    Value {
        /// Key of the invalid requirement.
        key: String,
        /// The value that is invalid.
        value: String,
    },
    /// An operator that there is not.
    #[error("{operator:?} is not a valid label selector operator")]
    Operator {
        /// The operator that is unknown.
        operator: String,
    },
    /// `In` or `NotIn` without a value.
    #[error("label selector operator {operator:?} needs a value for key {key:?}")]
    NoValues {
        /// Key of the invalid requirement.
        key: String,
        /// The operator of the requirement.
        operator: &'static str,
    },
    /// `Exists` or `DoesNotExist` with a value.
    #[error("label selector operator {operator:?} takes no values for key {key:?}")]
    UnwantedValues {
        /// Key of the invalid requirement.
        key: String,
        /// The operator of the requirement.
        operator: &'static str,
    },
    /// `>` or `<` with something that is no integer.
    #[error("label selector compares key {key:?} with {value:?}, which is not an integer")]
    NotAnInteger {
        /// Key of the invalid requirement.
        key: String,
        /// The value that is invalid.
        value: String,
    },
    /// Text that does not follow the grammar of queries.
    #[error("label selector {text:?} is malformed at byte {at}: found {found:?}, expected {expected}")]
    Syntax {
        /// Text of the whole selector.
        text: String,
        /// Where the unexpected part begins.
        at: usize,
        /// The unexpected part; empty at the end of the text.
        found: String,
        /// The tokens that would be valid here.
        expected: &'static str,
    },
}

crate::message! {
    /// A label selector as objects contain it, not yet checked.
    #[derive(Eq)]
    pub struct LabelSelector {
        /// Labels that must have exactly these values.
        pub match_labels: Labels = "matchLabels" @ 1;
        /// Further conditions, all of which must hold.
        pub match_expressions: Vec<LabelSelectorRequirement> = "matchExpressions" @ 2;
    }
}

crate::message! {
    /// One condition of a [`LabelSelector`], not yet checked.
    #[derive(Eq)]
    pub struct LabelSelectorRequirement {
        /// Key of the label.
        pub key: InternedStr = "key" @ 1;
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        pub operator: InternedStr = "operator" @ 2;
        /// Values for `In` and `NotIn`.
        pub values: Vec<InternedStr> = "values" @ 3;
    }
}

impl Selector {
    /// Text that selects nothing, because the query syntax has no such text.
    const NOTHING: &str = "!none,none";

    /// Matches every set of labels: a selector without requirements.
    #[must_use]
    pub fn everything() -> Self {
        Self(Repr::All(Box::default()))
    }

    /// Returns the selector that matches no set of labels, as an absent selector does.
    #[must_use]
    pub const fn nothing() -> Self {
        Self(Repr::Nothing)
    }

    /// Returns a selector of objects that have all of `labels` with these values. Without labels it selects everything.
    #[must_use]
    pub fn of_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self::all(
            labels.into_iter().map(|(key, value)| Requirement { key: key.into(), test: Test::Equals(value.into()) }),
        )
    }

    /// Returns `true` if this is [`everything`](Self::everything).
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(&self.0, Repr::All(requirements) if requirements.is_empty())
    }

    /// Returns `true` if this is [`nothing`](Self::nothing).
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        matches!(self.0, Repr::Nothing)
    }

    /// Returns `true` if an object with these labels is selected. Allocates nothing.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        match &self.0 {
            Repr::Nothing => false,
            Repr::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels)),
        }
    }

    /// Returns the only value of the label `key` that can be selected, or `None` if other values can be, too.
    ///
    /// With an index by that label, objects with another value need not be read.
    #[must_use]
    pub fn required_value(&self, key: &str) -> Option<&InternedStr> {
        self.required_labels().find(|(name, _)| **name == *key).map(|(_, value)| value)
    }

    /// Returns the labels that must have one certain value for an object to be selected, for an index by labels.
    pub fn required_labels(&self) -> impl Iterator<Item = (&InternedStr, &InternedStr)> {
        let requirements = match &self.0 {
            Repr::Nothing => &[][..],
            Repr::All(requirements) => requirements,
        };
        requirements.iter().filter_map(|it| match &it.test {
            Test::Equals(value) => Some((&it.key, value)),
            Test::NotEquals(_)
            | Test::In(_)
            | Test::NotIn(_)
            | Test::Exists
            | Test::DoesNotExist
            | Test::Greater(_)
            | Test::Less(_) => None,
        })
    }

    /// Returns a selector for all requirements of a term of a node selector, which also has the operators `Gt` and
    /// `Lt`.
    ///
    /// # Errors
    /// If a requirement is not valid in the API.
    ///
    /// # Upstream
    /// `nodeSelectorRequirementsAsSelector` of `component-helpers/scheduling/corev1/nodeaffinity`.
    pub fn of_node_requirements<'a>(
        requirements: impl IntoIterator<Item = &'a LabelSelectorRequirement>,
    ) -> Result<Self, InvalidSelector> {
        let requirements = requirements.into_iter().map(Requirement::of_node);
        Ok(Self::all(requirements.collect::<Result<Vec<_>, _>>()?))
    }

    fn all(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Box<[_]> = requirements.into_iter().collect();
        requirements.sort_unstable();
        Self(Repr::All(requirements))
    }
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = InvalidSelector;

    fn try_from(selector: &LabelSelector) -> Result<Self, InvalidSelector> {
        let labels = selector.match_labels.pairs().map(|(key, value)| Requirement::equals(key, value));
        let expressions = selector.match_expressions.iter().map(Requirement::try_from);
        Ok(Self::all(labels.chain(expressions).collect::<Result<Vec<_>, _>>()?))
    }
}

impl TryFrom<Option<&LabelSelector>> for Selector {
    type Error = InvalidSelector;

    /// An absent selector selects nothing.
    fn try_from(selector: Option<&LabelSelector>) -> Result<Self, InvalidSelector> {
        selector.map_or(Ok(Self::nothing()), Self::try_from)
    }
}

impl Requirement {
    fn equals(key: &InternedStr, value: &InternedStr) -> Result<Self, InvalidSelector> {
        Ok(Self { key: checked_key(key)?, test: Test::Equals(checked_value(key, value)?) })
    }

    /// As [`TryFrom`], and with the operators that compare numbers.
    fn of_node(raw: &LabelSelectorRequirement) -> Result<Self, InvalidSelector> {
        let test: fn(i64) -> Test = match raw.operator.as_str() {
            "Gt" => Test::Greater,
            "Lt" => Test::Less,
            _ => return Self::try_from(raw),
        };
        let not_an_integer = |value: String| InvalidSelector::NotAnInteger { key: raw.key.to_string(), value };
        let [value] = &raw.values[..] else { return Err(not_an_integer(raw.values.join(","))) };
        let bound = value.parse().map_err(|_| not_an_integer(value.to_string()))?;
        Ok(Self { key: checked_key(&raw.key)?, test: test(bound) })
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.test {
            Test::Equals(wanted) => value == Some(wanted),
            Test::NotEquals(unwanted) => value != Some(unwanted),
            Test::In(wanted) => value.is_some_and(|value| contains(wanted, value)),
            Test::NotIn(unwanted) => value.is_none_or(|value| !contains(unwanted, value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Greater(bound) => integer(value).is_some_and(|value| value > *bound),
            Test::Less(bound) => integer(value).is_some_and(|value| value < *bound),
        }
    }
}

impl TryFrom<&LabelSelectorRequirement> for Requirement {
    type Error = InvalidSelector;

    fn try_from(raw: &LabelSelectorRequirement) -> Result<Self, InvalidSelector> {
        let test = match raw.operator.as_str() {
            "In" => Test::In(checked_values(&raw.key, &raw.values, "In")?),
            "NotIn" => Test::NotIn(checked_values(&raw.key, &raw.values, "NotIn")?),
            "Exists" => without_values(raw, "Exists", Test::Exists)?,
            "DoesNotExist" => without_values(raw, "DoesNotExist", Test::DoesNotExist)?,
            operator => return Err(InvalidSelector::Operator { operator: operator.to_owned() }),
        };
        Ok(Self { key: checked_key(&raw.key)?, test })
    }
}

fn contains(sorted: &[InternedStr], value: &str) -> bool {
    sorted.binary_search_by(|known| known.as_str().cmp(value)).is_ok()
}

fn integer(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

fn checked_key(key: &InternedStr) -> Result<InternedStr, InvalidSelector> {
    if is_label_key(key) { Ok(key.clone()) } else { Err(InvalidSelector::Key { key: key.to_string() }) }
}

fn checked_value(key: &InternedStr, value: &InternedStr) -> Result<InternedStr, InvalidSelector> {
    if is_label_value(value) {
        Ok(value.clone())
    } else {
        Err(InvalidSelector::Value { key: key.to_string(), value: value.to_string() })
    }
}

fn checked_values(
    key: &InternedStr,
    values: &[InternedStr],
    operator: &'static str,
) -> Result<Box<[InternedStr]>, InvalidSelector> {
    if values.is_empty() {
        return Err(InvalidSelector::NoValues { key: key.to_string(), operator });
    }
    let mut values: Vec<_> = values.iter().map(|value| checked_value(key, value)).collect::<Result<_, _>>()?;
    values.sort_unstable();
    values.dedup();
    Ok(values.into())
}

fn without_values(raw: &LabelSelectorRequirement, operator: &'static str, test: Test) -> Result<Test, InvalidSelector> {
    if raw.values.is_empty() {
        Ok(test)
    } else {
        Err(InvalidSelector::UnwantedValues { key: raw.key.to_string(), operator })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Nothing => f.write_str(Self::NOTHING),
            Repr::All(requirements) => separated(f, requirements),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, test } = self;
        match test {
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => set(f, key, "in", values),
            Test::NotIn(values) => set(f, key, "notin", values),
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::Greater(bound) => write!(f, "{key}>{bound}"),
            Test::Less(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

fn set(f: &mut fmt::Formatter<'_>, key: &str, operator: &str, values: &[InternedStr]) -> fmt::Result {
    write!(f, "{key} {operator} (")?;
    separated(f, values)?;
    f.write_str(")")
}

fn separated(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(",")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}
