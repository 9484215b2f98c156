//! Times as Go's `time.Parse` reads them in the layout `time.RFC3339`.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

/// Reads a time; `None` if Go refuses it. A time beyond the calendar is the first or the last time of the calendar.
///
/// Go accepts more than RFC 3339: an hour of one digit, a fraction after a comma, offsets of up to 24 hours and 60 minutes. It
/// refuses a lower-case `t` or `z`, and the second 60.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.digits(4)?;
    rest.byte(b'-')?;
    let month = rest.digits(2)?;
    rest.byte(b'-')?;
    let day = rest.digits(2)?;
    rest.byte(b'T')?;
    let hour = rest.digits(2).or_else(|| rest.digits(1)).filter(|hour| *hour < 24)?;
    rest.byte(b':')?;
    let minute = rest.digits(2).filter(|minute| *minute < 60)?;
    rest.byte(b':')?;
    let second = rest.digits(2).filter(|second| *second < 60)?;
    let nanoseconds = rest.fraction();
    let offset = rest.offset()?;
    if !rest.0.is_empty() {
        return None;
    }
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let since = date.duration_since(Date::constant(1970, 1, 1))
        + SignedDuration::from_secs(hour * 3600 + minute * 60 + second)
        - offset
        + SignedDuration::from_nanos(nanoseconds);
    let end = if since.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    Some(Timestamp::from_duration(since).unwrap_or(end))
}

/// The text that is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// Reads exactly so many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let number = number(digits)?;
        self.0 = rest;
        Some(number)
    }

    /// Reads a fraction of a second, in nanoseconds. Go ignores digits after the ninth.
    fn fraction(&mut self) -> i64 {
        let [b'.' | b',', digits @ ..] = self.0 else { return 0 };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return 0;
        }
        let kept = count.min(9);
        let value = number(&digits[..kept]).unwrap_or_default();
        self.0 = &digits[count..];
        (kept..9).fold(value, |value, _| value * 10)
    }

    fn offset(&mut self) -> Option<SignedDuration> {
        if self.byte(b'Z').is_some() {
            return Some(SignedDuration::ZERO);
        }
        let is_ahead = self.byte(b'+').is_some();
        if !is_ahead {
            self.byte(b'-')?;
        }
        let hours = self.digits(2).filter(|hours| *hours <= 24)?;
        self.byte(b':')?;
        let minutes = self.digits(2).filter(|minutes| *minutes <= 60)?;
        let offset = SignedDuration::from_secs(hours * 3600 + minutes * 60);
        Some(if is_ahead { offset } else { -offset })
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k4_times_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z")),
            ("2026-01-02T3:04:05Z", Some("2026-01-02T03:04:05Z")),
            ("2026-01-02T03:04:05.25Z", Some("2026-01-02T03:04:05.25Z")),
            ("2026-01-02T03:04:05,25Z", Some("2026-01-02T03:04:05.25Z")),
            ("2026-01-02T03:04:05.1234567899Z", Some("2026-01-02T03:04:05.123456789Z")),
            ("2026-01-02T03:04:05+01:30", Some("2026-01-02T01:34:05Z")),
            ("2026-01-02T03:04:05-24:60", Some("2026-01-03T04:04:05Z")),
            ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59-24:00", Some("9999-12-30T22:00:00.999999999Z")),
            ("2028-02-29T00:00:00Z", Some("2028-02-29T00:00:00Z")),
            ("2026-02-29T00:00:00Z", None),
            ("2026-01-02t03:04:05Z", None),
            ("2026-01-02T03:04:05z", None),
            ("2026-01-02 03:04:05Z", None),
            ("2026-01-02T03:04:60Z", None),
            ("2026-01-02T03:60:05Z", None),
            ("2026-01-02T24:04:05Z", None),
            ("2026-01-02T03:4:05Z", None),
            ("2026-1-02T03:04:05Z", None),
            ("2026-00-02T03:04:05Z", None),
            ("2026-01-00T03:04:05Z", None),
            ("2026-01-02T03:04:05.Z", None),
            ("2026-01-02T03:04:05+25:00", None),
            ("2026-01-02T03:04:05+01:61", None),
            ("2026-01-02T03:04:05+0100", None),
            ("2026-01-02T03:04:05", None),
            ("2026-01-02T03:04:05Z ", None),
            ("+026-01-02T03:04:05Z", None),
            ("2026-01-02T-3:04:05Z", None),
            ("garbage", None),
            ("", None),
        ] {
            let expected = expected.map(|time| time.parse::<Timestamp>().unwrap());
            assert_eq!(parse_rfc3339(text), expected, "{text:?}");
        }
    }
}
