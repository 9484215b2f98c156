//! Quantities in canonical form, as the API stores them.

use std::cmp::Ordering;

use serde_json::Value;

/// A quantity in billionths, and its notation.
///
/// # Upstream
/// `apimachinery/pkg/api/resource`: `Quantity.CanonicalizeBytes`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    nano: i128,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

const ONE: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Returns `text` in canonical form, rounded up to a multiple of `step` billionths; `None` if it is no quantity or
/// already canonical.
pub(super) fn canonical(text: &str, step: i128) -> Option<String> {
    // Small integers and those with a plain suffix need no arithmetic.
    let digits = text.strip_suffix(['m', 'k', 'M', 'G']).unwrap_or(text);
    let plain = !digits.is_empty()
        && digits.len() < 4
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0');
    if plain {
        return None;
    }
    let mut quantity = Quantity::parse(text)?;
    quantity.nano = quantity.nano.checked_add(step - 1)?.div_euclid(step) * step;
    let canonical = quantity.to_string();
    (canonical != text).then_some(canonical)
}

impl Quantity {
    /// Parses the quantity in a JSON string or number.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let split = unsigned.find(|character: char| !character.is_ascii_digit() && character != '.');
        let (number, suffix) = unsigned.split_at(split.unwrap_or(unsigned.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (form, exponent, factor) = suffix_of(suffix)?;
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let places = i64::try_from(fraction.len()).ok()?;
        let mut nano = digits.checked_mul(factor)?;
        let shift = i64::from(exponent) - places + 9;
        let power = 10_i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?)?;
        if shift >= 0 {
            nano = nano.checked_mul(power)?;
        } else {
            // A value above zero is never rounded down to zero.
            nano = nano.checked_add(power - 1)? / power;
        }
        Some(Self { nano: if text.starts_with('-') { -nano } else { nano }, form })
    }

    pub(crate) fn is_negative(self) -> bool {
        self.nano < 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.nano == 0
    }

    pub(crate) fn is_whole(self) -> bool {
        self.nano % ONE == 0
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

fn suffix_of(suffix: &str) -> Option<(Form, i32, i128)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Form::Decimal, *exponent, 1));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Form::Binary, 0, 1024_i128.checked_pow(u32::try_from(power + 1).ok()?)?));
    }
    Some((Form::Exponent, suffix.strip_prefix(['e', 'E'])?.parse().ok()?, 1))
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        if self.form == Form::Binary && self.nano.abs() >= 1024 * ONE {
            let mut amount = self.nano / ONE + i128::from(self.nano % ONE > 0);
            let mut power = 0;
            while amount % 1024 == 0 && power < BINARY.len() {
                amount /= 1024;
                power += 1;
            }
            let suffix = power.checked_sub(1).and_then(|at| BINARY.get(at)).copied().unwrap_or_default();
            return write!(f, "{amount}{suffix}");
        }
        let (mut amount, mut exponent) = (self.nano, -9);
        while amount % 1000 == 0 && exponent < 18 {
            amount /= 1000;
            exponent += 3;
        }
        match DECIMAL.iter().find(|(_, known)| *known == exponent) {
            Some((suffix, _)) if self.form != Form::Exponent => write!(f, "{amount}{suffix}"),
            _ if exponent == 0 => write!(f, "{amount}"),
            _ => write!(f, "{amount}e{exponent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_stored_in_the_largest_unit_without_a_fraction() {
        for (given, stored) in [
            ("0", "0"),
            ("0m", "0"),
            ("1", "1"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1000", "1k"),
            ("1500M", "1500M"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("1024Ki", "1Mi"),
            ("0.5Ki", "512"),
            ("0.3Gi", "322122548"),
            ("1e3", "1e3"),
            ("12e2", "1200"),
            ("0.0001", "100u"),
            ("-1", "-1"),
            ("+1", "1"),
        ] {
            let parsed = Quantity::parse(given).map(|quantity| quantity.to_string());
            assert_eq!(parsed.as_deref(), Some(stored), "{given}");
            assert_eq!(canonical(given, 1).unwrap_or_else(|| given.to_owned()), stored, "{given}");
        }
        assert_eq!(canonical("0.0001", 1_000_000).as_deref(), Some("1m"));
        for bad in ["", "a", "1x", "1.2.3", "--1", "1 ", "Ki"] {
            assert_eq!(Quantity::parse(bad), None, "{bad}");
        }
        // Beyond the supported range: unchanged.
        for much in ["1e2147483647", "1e-2147483648", "170141183460469231731687303715884105727n"] {
            assert_eq!(canonical(much, 1_000_000), None, "{much}");
        }
    }
}
