//! Times as typed fields hold them: checked, and written back in UTC.

use jiff::Timestamp;

/// The precision of the times of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

/// Reads a time and writes it as the API server does; `None` for what is no time of RFC 3339.
pub(super) fn normalize(text: &str, precision: Precision) -> Option<String> {
    if !is_rfc3339(text, precision) {
        return None;
    }
    let time: Timestamp = text.replace(',', ".").parse().ok()?;
    Some(match precision {
        Precision::Seconds => kcm_api::time::format_seconds(time),
        Precision::Microseconds => kcm_api::time::format_micros(time),
    })
}

/// Returns `true` if Go accepts the text too: jiff also reads other forms of ISO 8601, and leap seconds.
fn is_rfc3339(text: &str, precision: Precision) -> bool {
    let Some((time, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else { return false };
    let (fraction, zone) = rest.split_at(rest.find(['Z', '+', '-']).unwrap_or(rest.len()));
    let is_fraction = match precision {
        Precision::Microseconds => fits(fraction, ".000000"),
        // Go takes a fraction that the layout does not have.
        Precision::Seconds => fraction.strip_prefix(['.', ',']).map_or(fraction.is_empty(), |digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }),
    };
    let is_zone = ["Z", "+00:00", "-00:00"].iter().any(|layout| fits(zone, layout));
    fits(time, "0000-00-00T00:00:00") && !time.ends_with("60") && is_fraction && is_zone
}

/// Returns `true` if a text matches a layout, in which `0` stands for any digit.
fn fits(text: &str, layout: &str) -> bool {
    let same = |(byte, expected): (u8, u8)| if expected == b'0' { byte.is_ascii_digit() } else { byte == expected };
    text.len() == layout.len() && text.bytes().zip(layout.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_and_as_exactly_as_their_field_is() {
        for (text, precision, expected) in [
            ("2020-01-01T01:00:00+01:00", Precision::Seconds, "2020-01-01T00:00:00Z"),
            ("2020-01-01T01:00:00.5+01:00", Precision::Seconds, "2020-01-01T00:00:00Z"),
            ("2020-01-01T01:00:00.500000+01:00", Precision::Microseconds, "2020-01-01T00:00:00.500000Z"),
        ] {
            assert_eq!(normalize(text, precision).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (text, precision) in [
            ("x", Precision::Seconds),
            ("", Precision::Seconds),
            ("2020-01-01", Precision::Seconds),
            ("2020-01-01T00:00:00", Precision::Seconds),
            ("2020-01-01 00:00:00Z", Precision::Seconds),
            ("2020-13-01T00:00:00Z", Precision::Seconds),
            ("2020-02-31T00:00:00Z", Precision::Seconds),
            ("2020-01-01T00:00:60Z", Precision::Seconds),
            ("2020-01-01T00:00:00Zx", Precision::Seconds),
            ("2020-01-01T00:00:00.Z", Precision::Seconds),
            ("2020", Precision::Microseconds),
            ("2020-01-01T00:00:00Z", Precision::Microseconds),
            ("2020-01-01T01:00:00.5+01:00", Precision::Microseconds),
        ] {
            assert_eq!(normalize(text, precision), None, "{text}");
        }
    }
}
