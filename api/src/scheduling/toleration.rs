//! Tolerations, and the taints that they tolerate.

use super::taint::Taint;
use crate::intern::InternedStr;

/// State of the feature gate `TaintTolerationComparisonOperators`: the operators `Gt` and `Lt` of tolerations compare
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOperators {
    /// The operators compare numbers.
    Enabled,
    /// A toleration with such an operator tolerates nothing.
    Disabled,
}

crate::message! {
    /// A toleration of a pod.
    #[derive(Eq, Hash)]
    pub struct Toleration {
        /// `key`; an empty key matches every key.
        pub key: InternedStr = "key" @ 1;
        /// `operator`: `Equal`, `Exists`, `Gt` or `Lt`. An empty operator means `Equal`.
        pub operator: InternedStr = "operator" @ 2;
        /// `value`, empty if it is absent.
        pub value: InternedStr = "value" @ 3;
        /// `effect`; an empty effect matches every effect.
        pub effect: InternedStr = "effect" @ 4;
        /// `tolerationSeconds`: the time for which a taint with the effect `NoExecute` is tolerated. `None` means for
        /// ever.
        pub toleration_seconds: Option<i64> = "tolerationSeconds" @ 5;
    }
}

impl Toleration {
    /// Returns `true` if the toleration tolerates the taint.
    ///
    /// # Upstream
    /// `Toleration.ToleratesTaint`. `Gt` tolerates a taint whose value is greater than the toleration's value. Both
    /// must be 64-bit integers in their shortest form: `07` and `+7` are invalid.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint, comparison: ComparisonOperators) -> bool {
        let matches = |wanted: &InternedStr, value: &InternedStr| wanted.is_empty() || wanted == value;
        if !matches(&self.effect, &taint.effect) || !matches(&self.key, &taint.key) {
            return false;
        }
        let compares = |order: fn(&i64, &i64) -> bool| {
            let numbers = integer(&taint.value).zip(integer(&self.value));
            comparison == ComparisonOperators::Enabled && numbers.is_some_and(|(taint, own)| order(&taint, &own))
        };
        match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            "Gt" => compares(i64::gt),
            "Lt" => compares(i64::lt),
            _ => false,
        }
    }
}

/// An integer as the API admits one: without plus sign and leading zeros.
fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix('-').unwrap_or(text).as_bytes() {
        [b'1'..=b'9', ..] => text.parse().ok(),
        [b'0'] if text == "0" => Some(0),
        _ => None,
    }
}
