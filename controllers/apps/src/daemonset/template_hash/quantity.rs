//! A quantity as go-spew prints its Go type.

use serde_json::Value;

/// Prints a quantity in the canonical form, which is the one that API servers return. An absent one is the zero value.
///
/// Returns nothing for what is no such quantity, and for one that Go does not keep as a 64-bit integer.
///
/// # Upstream
/// `ParseQuantity`, which keeps the string where it takes it for canonical.
pub(super) fn print(quantity: Option<&Value>) -> Option<String> {
    let Some(quantity) = quantity else { return Some(shown(0, 0, "", "")) };
    let text = quantity.as_str()?;
    if text == "0" {
        return Some(shown(0, 0, text, "DecimalSI"));
    }
    let (is_negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let end = unsigned.find(|character: char| !character.is_ascii_digit()).unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let count = i32::try_from(digits.len()).ok()?;
    let number: i64 = digits.parse().ok()?;
    let signed = |value: i64| if is_negative { -value } else { value };

    if let Some(power) = power_of_two(suffix) {
        // The estimate of the decimal digits of the power is upstream's, in integers.
        if 15 - count - power * 3 / 10 - 1 < 0 {
            return None;
        }
        let value = number.checked_mul(1 << power)?;
        let kept = if number % 8 == 0 { "" } else { text };
        return Some(shown(signed(value), 0, kept, "BinarySI"));
    }
    let (scale, format) = power_of_ten(suffix)?;
    if count > 18 || scale < -9 {
        return None;
    }
    let is_canonical = scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0');
    Some(shown(signed(number), scale, if is_canonical { text } else { "" }, format))
}

fn power_of_two(suffix: &str) -> Option<i32> {
    let (_, power) = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().zip(1..).find(|(it, _)| **it == suffix)?;
    Some(power * 10)
}

fn power_of_ten(suffix: &str) -> Option<(i32, &'static str)> {
    let prefixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some((_, power)) = prefixes.iter().zip(-3..).find(|(it, _)| **it == suffix) {
        return Some((power * 3, "DecimalSI"));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((exponent, "DecimalExponent"))
}

fn shown(value: i64, scale: i32, kept: &str, format: &str) -> String {
    format!(
        "{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} \
         d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){kept} Format:(resource.Format){format}}}"
    )
}
