//! Validations that several rows share.

use crate::did_you_mean::nearest;
use crate::duration::GoDuration;
use crate::value::Value;

/// Refuses zero and numbers below it. Values of other types pass.
pub fn positive(value: &Value) -> Result<(), String> {
    refuse_unless(at_least(value, true), "must be greater than zero")
}

/// Refuses numbers below zero. Values of other types pass.
pub fn not_negative(value: &Value) -> Result<(), String> {
    refuse_unless(at_least(value, false), "must not be negative")
}

/// Refuses numbers below `least` and above `most`; other values pass.
pub fn between(value: &Value, least: i64, most: i64) -> Result<(), String> {
    let fits = match value {
        Value::Int32(number) => (least..=most).contains(&i64::from(*number)),
        Value::Int(number) => (least..=most).contains(number),
        Value::Bool(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Duration(_)
        | Value::String(_)
        | Value::Strings(_)
        | Value::Int32s(_)
        | Value::Ip(_)
        | Value::Map(_)
        | Value::CertKeys(_)
        | Value::Quantity(_)
        | Value::ModuleLevels(_)
        | Value::Objects(_) => true,
    };
    if fits { Ok(()) } else { Err(format!("must be between {least} and {most}")) }
}

/// Refuses a string, or an item of a list, that is not in `known`. The empty string may be in it.
pub fn one_of(value: &Value, known: &[&str]) -> Result<(), String> {
    let strange = items(value).iter().find(|item| !known.contains(&item.as_str()));
    let Some(strange) = strange else { return Ok(()) };
    let names: Vec<&str> = known.iter().copied().filter(|name| !name.is_empty()).collect();
    let nearest = nearest(strange, names.iter().copied()).filter(|_| names.len() > 4);
    Err(match (nearest, names.as_slice()) {
        (Some(nearest), _) => format!("has {strange:?}, which is unknown; did you mean {nearest}?"),
        (None, [name]) => format!("must be {name}"),
        (None, names) if names.len() > 4 => format!("has {strange:?}, which is unknown"),
        (None, names) => format!("must be one of {}", names.join(", ")),
    })
}

/// Refuses a list with an item that is only white space.
pub fn no_blank_items(value: &Value) -> Result<(), String> {
    let is_good = items(value).iter().all(|item| !item.trim().is_empty());
    refuse_unless(is_good, "must have no empty items")
}

fn items(value: &Value) -> &[String] {
    match value {
        Value::String(item) => std::slice::from_ref(item),
        Value::Strings(items) => items,
        Value::Bool(_)
        | Value::Int32(_)
        | Value::Int(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Duration(_)
        | Value::Int32s(_)
        | Value::Ip(_)
        | Value::Map(_)
        | Value::CertKeys(_)
        | Value::Quantity(_)
        | Value::ModuleLevels(_)
        | Value::Objects(_) => &[],
    }
}

fn at_least(value: &Value, above: bool) -> bool {
    match value {
        Value::Int32(number) => *number > 0 || (!above && *number == 0),
        Value::Int(number) => *number > 0 || (!above && *number == 0),
        Value::Float32(number) => *number > 0.0 || (!above && *number == 0.0),
        Value::Float64(number) => *number > 0.0 || (!above && *number == 0.0),
        Value::Duration(duration) => *duration > GoDuration::ZERO || (!above && *duration == GoDuration::ZERO),
        Value::Quantity(quantity) => {
            let value = quantity.amount().value();
            value > 0 || (!above && value == 0)
        }
        Value::Bool(_)
        | Value::String(_)
        | Value::Strings(_)
        | Value::Int32s(_)
        | Value::Ip(_)
        | Value::Map(_)
        | Value::CertKeys(_)
        | Value::ModuleLevels(_)
        | Value::Objects(_) => true,
    }
}

fn refuse_unless(passes: bool, reason: &str) -> Result<(), String> {
    if passes { Ok(()) } else { Err(reason.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_not_positive_and_not_negative() {
        for zero in [Value::Int32(0), Value::Float32(0.0), Value::Duration(GoDuration::ZERO)] {
            assert!(positive(&zero).is_err(), "{zero:?}");
            assert_eq!(not_negative(&zero), Ok(()), "{zero:?}");
        }
        assert!(not_negative(&Value::Int32(-1)).is_err());
        assert_eq!(positive(&Value::Float32(0.1)), Ok(()));
    }

    #[test]
    fn strings_and_items_are_compared_with_the_known_ones() {
        let known = ["text", "json"];
        assert_eq!(one_of(&Value::String("json".to_owned()), &known), Ok(()));
        assert_eq!(one_of(&Value::String("jsn".to_owned()), &known), Err("must be one of text, json".to_owned()));
        let many = ["one", "two", "three", "four", "five"];
        let items = |items: &[&str]| Value::Strings(items.iter().map(|&item| item.to_owned()).collect());
        assert_eq!(one_of(&items(&["two", "five"]), &many), Ok(()));
        let near = Err("has \"thre\", which is unknown; did you mean three?".to_owned());
        assert_eq!(one_of(&items(&["two", "thre"]), &many), near);
        assert_eq!(one_of(&items(&["hundred"]), &many), Err("has \"hundred\", which is unknown".to_owned()));
        assert!(no_blank_items(&items(&["a", " "])).is_err());
        assert_eq!(no_blank_items(&items(&[])), Ok(()));
    }

    #[test]
    fn bounds_are_included() {
        assert_eq!([0, 1, 5, 6].map(|number| between(&Value::Int32(number), 1, 5).is_ok()), [false, true, true, false]);
        assert_eq!(between(&Value::Int(6), 1, 5), Err("must be between 1 and 5".to_owned()));
    }
}
