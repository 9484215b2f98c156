//! Resource lists: requests of pods and capacity of nodes. Pure.

use kcm_api::Quantity;
use serde_json::Value;

use kcm_sandbox_apiserver::json;

/// Quantities by resource in thousandths, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourceList(Vec<(Box<str>, i64)>);

impl ResourceList {
    /// Parses a map of quantities; invalid ones are skipped, since the API rejects them.
    pub(crate) fn read(map: Option<&Value>) -> Self {
        let map = map.and_then(Value::as_object);
        let mut amounts: Vec<(Box<str>, i64)> = map
            .into_iter()
            .flatten()
            .filter_map(|(name, amount)| Some((name.as_str().into(), thousandths(amount)?)))
            .collect();
        amounts.sort();
        Self(amounts)
    }

    /// Returns the requests of a container, which default to its limits.
    pub(crate) fn of_container(container: &Value) -> Self {
        let mut requests = Self::read(json::at(container, &["resources", "limits"]));
        for (name, amount) in Self::read(json::at(container, &["resources", "requests"])).0 {
            *requests.entry(&name) = amount;
        }
        requests
    }

    pub(crate) fn get(&self, name: &str) -> i64 {
        self.0.iter().find(|(known, _)| **known == *name).map_or(0, |(_, amount)| *amount)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self.entry(name);
            *sum = sum.saturating_add(amount);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self.entry(name);
            *sum = sum.saturating_sub(amount);
        }
    }

    /// Takes the maximum per resource.
    pub(crate) fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let known = self.entry(name);
            *known = amount.max(*known);
        }
    }

    /// Overwrites the quantities of the same resources.
    pub(crate) fn replace(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            *self.entry(name) = amount;
        }
    }

    fn entry(&mut self, name: &str) -> &mut i64 {
        let at = match self.0.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (name.into(), 0));
                at
            }
        };
        &mut self.0[at].1
    }
}

/// Parses a quantity in thousandths, rounded away from zero and saturating.
fn thousandths(amount: &Value) -> Option<i64> {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let exact = text.parse::<Quantity>().ok()?.to_string();
    let (digits, exponent) = exact.split_once('e').unwrap_or((&exact, "0"));
    let exponent = exponent.parse::<i32>().ok()?.saturating_add(3);
    let Ok(digits) = digits.parse::<i128>() else { return Some(i64::MAX) };
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    let number = match power {
        Some(power) if exponent >= 0 => digits.checked_mul(power).unwrap_or(i128::MAX),
        Some(power) => digits / power + (digits % power).signum(),
        None if exponent >= 0 => i128::MAX,
        None => digits.signum(),
    };
    Some(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_counted_in_thousandths() {
        for (text, expected) in [
            (json!("100m"), Some(100)),
            (json!("2"), Some(2_000)),
            (json!(2), Some(2_000)),
            (json!("1.5Gi"), Some(1_610_612_736_000)),
            (json!("1u"), Some(1)),
            (json!("0"), Some(0)),
            (json!("100E"), Some(i64::MAX)),
            (json!("170141183460469231731687303715884105727n"), Some(i64::MAX)),
            (json!("-1.5u"), Some(-1)),
            (json!("lots"), None),
        ] {
            assert_eq!(thousandths(&text), expected, "{text}");
        }
    }

    #[test]
    fn requests_default_to_limits() {
        let container = json!({ "resources": { "limits": { "cpu": "2", "memory": "1" }, "requests": { "cpu": "1" } } });
        let requests = ResourceList::of_container(&container);
        assert_eq!((requests.get("cpu"), requests.get("memory"), requests.get("other")), (1_000, 1_000, 0));
    }
}
