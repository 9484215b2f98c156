//! Acceptance of durations and points in time as Go's package `time` has it.

use crate::ast::Literal;

pub(super) fn is_duration_literal(literal: &Literal) -> bool {
    if let Literal::String(text) = literal { is_duration(text) } else { false }
}

pub(super) fn is_timestamp_literal(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => timestamp(text).is_some_and(in_range),
        Literal::Int(seconds) => in_range(*seconds),
        Literal::Null | Literal::Bool(_) | Literal::Uint(_) | Literal::Double(_) | Literal::Bytes(_) => false,
    }
}

/// Returns `true` for seconds since 1970 of the years 1 to 9999.
fn in_range(seconds: i64) -> bool {
    (-62_135_596_800..=253_402_300_799).contains(&seconds)
}

const LIMIT: u64 = 1 << 63;

/// Returns `true` for texts such as `1h2.5m` that fit into 64 bits of nanoseconds.
fn is_duration(text: &str) -> bool {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let Some((nanoseconds, after)) = component(rest) else { return false };
        let Some(sum) = total.checked_add(nanoseconds).filter(|sum| *sum <= LIMIT) else { return false };
        (total, rest) = (sum, after);
    }
    negative || total < LIMIT
}

/// Reads a number with its unit.
fn component(text: &str) -> Option<(u64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit: u64 = match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    if whole > LIMIT / unit {
        return None;
    }
    // Digits beyond the ninth are less than a nanosecond of an hour's thousandth part; they cannot reach a limit.
    let parts = fraction
        .bytes()
        .take(18)
        .fold((0u128, 1u128), |(value, scale), digit| (value * 10 + u128::from(digit - b'0'), scale * 10));
    let nanoseconds = u64::try_from(parts.0 * u128::from(unit) / parts.1).ok()?;
    let total = (whole * unit).checked_add(nanoseconds).filter(|total| *total <= LIMIT)?;
    Some((total, rest))
}

/// Returns the seconds since 1970 of a text of RFC 3339, with Go's additions: an hour of one digit, a comma before the
/// fraction, and offsets of up to 24 hours and 60 minutes.
fn timestamp(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (year, rest) = fixed(bytes, 4)?;
    let (month, rest) = fixed(literal(rest, b'-')?, 2)?;
    let (day, rest) = fixed(literal(rest, b'-')?, 2)?;
    let rest = literal(rest, b'T')?;
    let (hour, rest) = fixed(rest, 2).or_else(|| fixed(rest, 1))?;
    let (minute, rest) = fixed(literal(rest, b':')?, 2)?;
    let (second, rest) = fixed(literal(rest, b':')?, 2)?;
    let rest = match rest {
        [b'.' | b',', first, ..] if first.is_ascii_digit() => {
            &rest[1 + rest[1..].iter().take_while(|b| b.is_ascii_digit()).count()..]
        }
        _ => rest,
    };
    let offset = match rest {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), after @ ..] => {
            let (hours, after) = fixed(after, 2)?;
            let (minutes, after) = fixed(literal(after, b':')?, 2)?;
            if !after.is_empty() || hours > 24 || minutes > 60 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if day < 1 || day > *length || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

fn fixed(bytes: &[u8], length: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(length)?;
    let value = digits.iter().try_fold(0, |value, b| b.is_ascii_digit().then(|| value * 10 + i64::from(b - b'0')))?;
    Some((value, rest))
}

fn literal(bytes: &[u8], expected: u8) -> Option<&[u8]> {
    bytes.strip_prefix(&[expected])
}

/// Returns the days since 1970 of a date of the Gregorian calendar, from year 0 on.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{days, in_range, is_duration, timestamp};

    #[test]
    fn counts_days_from_1970() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(1, 1, 1) * 86_400, -62_135_596_800);
        assert_eq!(days(9999, 12, 31) * 86_400 + 86_399, 253_402_300_799);
    }

    #[test]
    fn reads_durations_as_go_does() {
        let valid = [
            "0",
            "-0",
            "+1s",
            "1h2m3s",
            "1.5h",
            ".5s",
            "1.s",
            "1us",
            "1\u{b5}s",
            "1\u{3bc}s",
            "2562047h47m16.854775807s",
        ];
        for text in valid.into_iter().chain(["-9223372036854775808ns", "1s1s"]) {
            assert!(is_duration(text), "{text}");
        }
        for text in ["", "-", "1", ".s", "1d", "s", "1 s", "9223372036854775808ns", "2562048h", "1h-1m"] {
            assert!(!is_duration(text), "{text}");
        }
    }

    #[test]
    fn reads_points_in_time_as_go_does() {
        assert_eq!(timestamp("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(timestamp("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(timestamp("2024-02-29T9:00:00,5Z"), Some(1_709_197_200));
        for text in [
            "2023-02-29T00:00:00Z",
            "2024-01-01",
            "2024-01-01t00:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:60Z",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
        }
        assert!(!timestamp("0000-12-31T23:59:59Z").is_some_and(in_range));
        assert!(!timestamp("9999-12-31T23:59:59-01:00").is_some_and(in_range));
    }
}
