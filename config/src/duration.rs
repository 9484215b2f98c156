//! Durations in Go's notation, as every Kubernetes flag and file writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOSECOND: i64 = 1;
const MICROSECOND: i64 = 1_000 * NANOSECOND;
const MILLISECOND: i64 = 1_000 * MICROSECOND;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// A signed number of nanoseconds in the form of Go's `time.Duration`: `12h0m0s`, `1m30s`, `500ms`.
///
/// Parsing accepts the same text as `time.ParseDuration`, and output is equal to `Duration.String`. Therefore a value
/// printed by upstream and by this program is the same text.
///
/// ```
/// use kcm_config::GoDuration;
///
/// let period: GoDuration = "90s".parse()?;
/// assert_eq!(period.to_string(), "1m30s");
/// assert_eq!(period.unsigned().as_secs(), 90);
/// # Ok::<(), kcm_config::NotADuration>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GoDuration(i64);

/// The text is not a duration in Go's notation, or does not fit 64 bits of nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a duration with units, such as 1m30s")]
pub struct NotADuration;

impl GoDuration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A duration of whole nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// A duration of whole milliseconds.
    #[must_use]
    pub const fn from_millis(milliseconds: i32) -> Self {
        Self(milliseconds as i64 * MILLISECOND)
    }

    /// A duration of whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: i32) -> Self {
        Self(seconds as i64 * SECOND)
    }

    /// The signed number of nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns the time to wait: none for a negative duration, as with Go's timers.
    #[must_use]
    pub fn unsigned(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl FromStr for GoDuration {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if unsigned == "0" {
            return Ok(Self::ZERO);
        }
        if unsigned.is_empty() {
            return Err(NotADuration);
        }
        let mut total: u64 = 0;
        let mut rest = unsigned;
        while !rest.is_empty() {
            let (term, after) = term(rest)?;
            total = total.checked_add(term).ok_or(NotADuration)?;
            rest = after;
        }
        // The most negative duration has no positive counterpart.
        let nanoseconds = if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        nanoseconds.map(Self).ok_or(NotADuration)
    }
}

/// Parses one `number unit` at the start of `text` as nanoseconds. Returns it with the rest of the text.
fn term(text: &str) -> Result<(u64, &str), NotADuration> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(NotADuration);
    }
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let unit = nanoseconds_of(unit).ok_or(NotADuration)?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| NotADuration)? };
    let total = whole.checked_mul(unit).and_then(|t| t.checked_add(fraction_of(fraction, unit))).ok_or(NotADuration)?;
    Ok((total, rest))
}

/// The part of `unit` that the digits after a decimal point name.
///
/// In floating point as Go computes it, so that a third of an hour written with nineteen digits is twenty minutes here
/// too. Digits beyond what 64 bits hold are ignored.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rounding is part of the notation, and the result is between zero and `unit`"
)]
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        let Some(next) = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) else { break };
        if next > 1 << 63 {
            break;
        }
        (value, scale) = (next, scale * 10.0);
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn nanoseconds_of(unit: &str) -> Option<u64> {
    let nanoseconds = match unit {
        "ns" => NANOSECOND,
        // The micro sign, the Greek letter, and the plain spelling.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    };
    Some(nanoseconds.unsigned_abs())
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let second = SECOND.unsigned_abs();
        if nanoseconds == 0 {
            return f.write_str("0s");
        }
        if nanoseconds < second {
            let (unit, name) = match nanoseconds {
                n if n < MICROSECOND.unsigned_abs() => (NANOSECOND, "ns"),
                n if n < MILLISECOND.unsigned_abs() => (MICROSECOND, "\u{b5}s"),
                _ => (MILLISECOND, "ms"),
            };
            let number = decimal(nanoseconds, unit.unsigned_abs());
            return write!(f, "{sign}{number}{name}");
        }
        let (minutes, in_minute) = (nanoseconds / (60 * second), nanoseconds % (60 * second));
        let seconds = decimal(in_minute, second);
        match (minutes / 60, minutes % 60) {
            (0, 0) => write!(f, "{sign}{seconds}s"),
            (0, minutes) => write!(f, "{sign}{minutes}m{seconds}s"),
            (hours, minutes) => write!(f, "{sign}{hours}h{minutes}m{seconds}s"),
        }
    }
}

/// `nanoseconds` counted in `unit` (a power of ten), without trailing zeros.
fn decimal(nanoseconds: u64, unit: u64) -> String {
    let (whole, fraction) = (nanoseconds / unit, nanoseconds % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{fraction:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_go_reads_and_writes_it_as_go_writes_it() {
        let cases = [
            ("0", "0s"),
            ("-0", "0s"),
            ("0s", "0s"),
            ("1ns", "1ns"),
            ("1100ns", "1.1\u{b5}s"),
            ("2us", "2\u{b5}s"),
            ("2\u{3bc}s", "2\u{b5}s"),
            ("500ms", "500ms"),
            ("2200us", "2.2ms"),
            ("15s", "15s"),
            ("90s", "1m30s"),
            ("4m5.001s", "4m5.001s"),
            ("1.5h", "1h30m0s"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("12h", "12h0m0s"),
            ("8760h", "8760h0m0s"),
            ("-1m", "-1m0s"),
            ("+5s", "5s"),
            ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
            ("-2562047h47m16.854775808s", "-2562047h47m16.854775808s"),
            ("0.3333333333333333333h", "20m0s"),
        ];
        for (text, printed) in cases {
            let duration: GoDuration = text.parse().unwrap_or_else(|_| panic!("{text} is a duration"));
            assert_eq!(duration.to_string(), printed, "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        let cases =
            ["", "-", "3", "1.5", ".s", "s", "1x", "1h 2m", " 1s", "1s ", "1e3s", "--1s", "2562047h47m16.854775808s"];
        for text in cases {
            assert_eq!(text.parse::<GoDuration>(), Err(NotADuration), "{text:?}");
        }
    }

    #[test]
    fn a_negative_duration_waits_for_nothing() {
        assert_eq!(GoDuration::from_secs(-1).unsigned(), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(nanoseconds: i64) {
            let duration = GoDuration::from_nanos(nanoseconds);
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.a-z\u{b5}\u{3bc} ]{0,24}") {
            if let Ok(duration) = text.parse::<GoDuration>() {
                prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
            }
        }
    }
}
